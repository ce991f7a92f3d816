"""Imports go one way, files stay short, and a few words do not occur."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__ or "").parent

# Who may import whom, from the bottom up; a folder stands for its files, and who is not named is free above these.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "noise": set(),
    "vector": {"errors"},
    "conflict": {"noise"},
    "learned": set(),
    "spectrum": {"errors", "noise", "vector"},
    "presets": set(),
    "layers": {"errors", "noise"},
    "slots": {"errors", "noise", "vector"},
    "task": {"errors", "layers", "vector"},
    "method": {"errors", "noise", "slots", "vector"},
    "privacy": {"errors", "method", "slots", "vector"},
    "parts": {"conflict", "errors", "learned", "method", "noise", "privacy", "slots", "spectrum", "vector"},
    "text": {"errors", "method", "parts", "presets"},
    "gradient": {"vector"},
    "round": {"gradient", "method", "noise", "slots", "task", "vector"},
    "execute": {"errors", "execute", "gradient", "method", "noise", "round", "slots", "task", "vector"},
    "data": {"data", "errors", "noise", "text", "vector"},
    "models": {"data", "errors", "models", "noise", "vector"},
}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below `if TYPE_CHECKING`, which no run sees."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not for_types_only(child):
            yield from nodes(child)


def imported(path: Path) -> set[str]:
    """The modules that a file imports, as dotted names."""
    found: set[str] = set()
    for node in nodes(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} imports by dots"
            # `from holdfast import noise` is an import of holdfast.noise.
            inner = node.module == "holdfast"
            found |= {f"holdfast.{alias.name}" for alias in node.names} if inner else {str(node.module)}
    return found


def own(path: Path) -> set[str]:
    """The layers of this package that a file imports."""
    return {module.split(".")[1] for module in imported(path) if module.startswith("holdfast.")} - {"__version__"}


@pytest.mark.parametrize("path", files(), ids=name)
def test_imports_go_one_way(path: Path) -> None:
    allowed = LAYERS.get(layer(path))
    if allowed is not None and name(path) != "parts/__init__.py":
        assert own(path) <= allowed, f"{name(path)} imports {sorted(own(path) - allowed)}"
    if layer(path) not in ("__main__",):
        assert "cli" not in own(path), f"{name(path)} imports the command line"


def test_parts_never_import_each_other() -> None:
    for path in (PACKAGE / "parts").glob("*.py"):
        others = {module for module in imported(path) if module.startswith("holdfast.parts")}
        assert not others, f"{name(path)} imports {others}"


def test_there_are_no_circles() -> None:
    """Among the single files that do not stand in folders; deferred imports count, for a circle is a circle."""
    flat = {layer(path): own(path) for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    folders: dict[str, set[str]] = {}
    for path in files():
        if path.parent != PACKAGE:
            folders.setdefault(layer(path), set()).update(own(path) - {layer(path)})
    graph = flat | folders
    while graph:
        ready = [module for module, needs in graph.items() if not needs & graph.keys()]
        assert ready, f"these import in a circle: { {m: sorted(n & graph.keys()) for m, n in graph.items()} }"
        graph = {module: needs for module, needs in graph.items() if module not in ready}


def is_part(path: Path) -> bool:
    classes = [node for node in tree(path).body if isinstance(node, ast.ClassDef)]
    return any("part(" in ast.unparse(d) for node in classes for d in node.decorator_list)


@pytest.mark.parametrize("path", files(), ids=name)
def test_files_and_functions_stay_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    most = 60 if layer(path) == "parts" and is_part(path) else 220 if name(path) == "round.py" else 300
    assert lines <= most, f"{name(path)} has {lines} lines; at most {most}"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= 60, f"{name(path)}: {node.name} has {length} lines; at most 60"


@pytest.mark.parametrize("path", files(), ids=name)
def test_nothing_waits_for_the_device_or_runs_text(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            said = ast.unparse(node.func)
            assert not said.endswith(".item"), f"{name(path)}:{node.lineno} calls .item()"
            assert said not in ("eval", "exec"), f"{name(path)}:{node.lineno} calls {said}("
    if name(path) != "data/readers/cifar.py":  # the published archives are pickles; it takes nothing but plain arrays
        assert not {module for module in imported(path) if module.split(".")[0] in ("pickle", "dill", "cloudpickle")}


@pytest.mark.parametrize("path", files(), ids=name)
def test_only_round_calls_a_slot(path: Path) -> None:
    """Executors, simulations and reports ask `round.py`; a part that calls its own helper is its own affair."""
    hooks = {"ascend", "perturb", "transform", "correct", "descend", "close", "weigh", "merge", "update"}
    slots = {node.name.lower() for node in tree(PACKAGE / "slots.py").body if isinstance(node, ast.ClassDef)}
    assert hooks <= slots
    if layer(path) in ("execute", "simulate", "run", "experiment"):
        calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
        asked = {n.func.attr for n in calls if isinstance(n.func, ast.Attribute)} & (hooks - {"close", "update"})
        assert not asked, f"{name(path)} calls {asked}"
