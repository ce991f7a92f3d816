"""A new part is one new file and is tested on arrival; and laws notice what is wrong with a wrong one."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.laws import LAWS, check
from holdfast.method import HINTS, REGISTRY, Part
from holdfast.text import parse

Bring = Callable[[str, str], type[Part]]

HEAD = """from __future__ import annotations

import torch

from holdfast.method import Part, part
from holdfast.slots import Close, Correct, Round, Step, Transform, Update, zeros
from holdfast.vector import Record, Vector
"""

PULLBACK = '''

@part("pullback", cites="nobody2026")
class Pullback(Part, Correct, Close):
    """Pulls each client towards where it last ended."""

    mu: float = 0.1
    ranges = {"mu": ">= 0"}
    neutral = {"mu": 0.0}
    memory = {"w": zeros}
    observes = frozenset({Close})

    def correct(self, s: Step) -> Vector:
        return self.mu * (s.w - s.mem["w"])

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"w": s.w}
'''

WRITER = '''

@part("writer")
class Writer(Part, Transform):
    """Remembers a gradient in itself."""

    def transform(self, g: Vector, s: Step) -> Vector:
        seen = self.__dict__.get("last", torch.zeros_like(g))
        object.__setattr__(self, "last", g)
        return g + 0.1 * seen
'''

FORGETFUL = '''

@part("forgetful")
class Forgetful(Part, Correct, Close):
    """Declares two tables and returns one."""

    memory = {"a": zeros, "b": zeros}

    def correct(self, s: Step) -> Vector:
        return 0.1 * (s.mem["a"] + s.mem["b"] + s.w)

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"a": s.w}
'''

LIAR = '''

@part("liar")
class Liar(Part, Update):
    """Says that it only looks."""

    observes = frozenset({Update})

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return 0.5 * delta, {}
'''


@pytest.fixture
def bring(tmp_path: Path) -> Iterator[Bring]:
    """Writes a part to a file, imports it, and takes it out of the registry afterwards."""
    brought: list[str] = []

    def importing(name: str, source: str) -> type[Part]:
        path = tmp_path / f"{name}.py"
        path.write_text(HEAD + source)
        spec = importlib.util.spec_from_file_location(f"brought_{name}", path)
        assert spec and spec.loader
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        brought.append(name)
        spec.loader.exec_module(module)
        return REGISTRY[name]

    yield importing
    for name in brought:
        sys.modules.pop(f"brought_{name}")
        HINTS.pop(REGISTRY.pop(name))


def test_a_new_part_touches_one_file(bring: Bring) -> None:
    bring("pullback", PULLBACK)
    assert len(PULLBACK.strip().splitlines()) <= 20
    assert str(parse("pullback(mu=0.2) + sam")) == "pullback(mu=0.2) + sam"
    assert check("pullback") == list(LAWS), "all laws apply to it and hold"


def test_the_registry_is_as_before(bring: Bring) -> None:
    assert not {"pullback", "writer", "forgetful", "liar"} & set(REGISTRY)


@pytest.mark.parametrize(
    ("name", "source", "law", "said"),
    [
        ("writer", WRITER, "purity", "called twice"),
        ("forgetful", FORGETFUL, "declared", "memory ['a']; declared ['a', 'b']"),
        ("liar", LIAR, "declared", "observe"),
    ],
)
def test_a_wrong_part_is_caught(bring: Bring, name: str, source: str, law: str, said: str) -> None:
    bring(name, source)
    with pytest.raises(AssertionError) as caught:
        check(name)
    lines = [line for line in str(caught.value).splitlines() if line.startswith(f"law '{law}', method '{name}'")]
    assert lines and said in lines[0], str(caught.value)


def test_an_attribute_that_changes_no_number_is_caught_too(bring: Bring) -> None:
    bring("writer", WRITER.replace("return g + 0.1 * seen", "return g + 0 * seen"))
    with pytest.raises(AssertionError, match="attributes were written"):
        LAWS["purity"](parse("writer"))


def test_assigning_to_an_attribute_is_caught(bring: Bring) -> None:
    bring("writer", WRITER.replace('object.__setattr__(self, "last", g)', "self.last = g"))
    with pytest.raises(AssertionError, match=r"law 'purity'.*cannot assign to field 'last'"):
        LAWS["purity"](parse("writer"))
