"""The text of a method, and of a split, model or data set: a Python expression that is parsed and never evaluated."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast.errors import Refused
from holdfast.method import Method, Part
from holdfast.parts import REGISTRY
from holdfast.presets import PRESETS


class Call(NamedTuple):
    """One `name(option=value, ...)` of a text."""

    name: str
    options: dict[str, Any]
    column: int = 0


def parse(text: str) -> Method:
    """The method that a text names: `parse("scaffold + specgrad(r=0.05)")`."""
    parts: list[Part] = []
    problems: list[str] = []
    for call in calls(text, "method"):
        if call.name not in REGISTRY and call.name not in PRESETS:
            problems.append(unknown("part", call.name, [*REGISTRY, *PRESETS], text, call.column))
            continue
        try:
            parts += preset(call) if call.name in PRESETS else [made(call.name, call.options)]
        except Refused as refused:
            problems += refused.problems
    if problems:
        raise Refused(*problems)
    return Method(tuple(parts))


def preset(call: Call) -> list[Part]:
    """The parts of a preset; each option goes to the one part that has it."""
    inner = calls(PRESETS[call.name], "method") if PRESETS[call.name] else []
    owners = {key: [c for c in inner if key in REGISTRY[c.name].hints()] for key in call.options}
    problems: list[str] = []
    for key, found in owners.items():
        if len(found) == 1:
            found[0].options[key] = call.options[key]
        elif found:
            both = " and ".join(f"'{c.name}'" for c in found)
            problems.append(
                f"'{call.name}' has '{key}' in {both}; write {PRESETS[call.name]} and give it to the one you mean"
            )
        else:
            known = [key for c in inner for key in REGISTRY[c.name].hints()]
            problems.append(no_option(call.name, key, known))
    if problems:
        raise Refused(*problems)
    return [made(c.name, c.options) for c in inner]


def made(name: str, options: dict[str, Any]) -> Part:
    cls = REGISTRY[name]
    wrong = [no_option(name, key, list(cls.hints())) for key in options if key not in cls.hints()]
    if wrong:
        raise Refused(*wrong)
    return cls(**options)


def no_option(name: str, key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"'{name}' has no option '{key}'; it has {', '.join(known) or 'none'}{hint}"


def unknown(kind: str, name: str, known: Iterable[str], text: str, column: int) -> str:
    near = difflib.get_close_matches(name, list(known), 3)
    lines = [f"unknown {kind} '{name}'", f"  {text}", f"  {' ' * column}{'^' * len(name)}"]
    if near:
        lines.append(f"  did you mean {' or '.join(near)}?")
    else:
        lines.append(f"  there are {', '.join(sorted(known))}")
    return "\n".join(lines)


def one(text: str, kind: str) -> Call:
    """A single call: of a split, model or data set; or `package.module:callable`, with options or without."""
    outside = re.fullmatch(r"\s*([A-Za-z_][\w.]*:[A-Za-z_]\w*)\s*(\(.*\))?\s*", text, re.DOTALL)
    if outside:
        inner = calls("f" + (outside[2] or ""), kind)[0]
        return Call(outside[1], inner.options)
    found = calls(text, kind)
    if len(found) != 1:
        raise Refused(f"a {kind} is one name with its options, such as {EXAMPLES[kind]}; got {text!r}")
    return found[0]


EXAMPLES = {
    "method": "fedavg + specgrad(r=0.05)",
    "split": "dirichlet(alpha=0.1, clients=100)",
    "model": "cnn(width=16)",
    "data set": "digits",
    "drift": "client(alpha=0.1)",
    "augmentation": "crop(pad=4) + flip",
    "normalisation": "fl_simulator_cifar10",
    "calibration": "ccvr(samples=1000)",
    "policy": "deadline(seconds=60)",
}


def calls(text: str, kind: str) -> list[Call]:
    """The sum of calls that a text is; anything else is refused with its place."""
    if not text.strip():
        raise Refused(f"not a {kind}: it is empty; write it like {EXAMPLES[kind]}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        column = max((getattr(error, "offset", None) or 1) - 1, 0)
        raise Refused(f"not a {kind}: {error.args[0]}\n  {text.strip()}\n  {' ' * column}^\n"
                      f"  write it like {EXAMPLES[kind]}") from None  # fmt: skip
    found: list[Call] = []
    problems: list[str] = []
    terms = [tree]
    while terms:
        node = terms.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            terms += [node.right, node.left]
        elif isinstance(node, ast.Name):
            found.append(Call(node.id, {}, node.col_offset))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.append(Call(node.func.id, literals(node, problems), node.col_offset))
        else:
            problems.append(f"not a {kind}: '{ast.unparse(node)}'; write it like {EXAMPLES[kind]}")
    if problems:
        raise Refused(*problems)
    return found


def literals(node: ast.Call, problems: list[str]) -> dict[str, Any]:
    """The options of a call; values are numbers, quoted text, True, False or None."""
    assert isinstance(node.func, ast.Name)
    options: dict[str, Any] = {}
    for value in node.args:
        problems.append(f"'{node.func.id}': '{ast.unparse(value)}' has no name; write option={ast.unparse(value)}")
    for keyword in node.keywords:
        try:
            value: Any = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, RecursionError):
            value = None
            said = ast.unparse(keyword.value)
            problems.append(f"'{node.func.id}': {keyword.arg}={said} is not a number, quoted text, True, False or None")
        if keyword.arg is None:
            problems.append(f"'{node.func.id}': ** is not allowed; write the options out")
        elif keyword.arg in options:
            problems.append(f"'{node.func.id}' has '{keyword.arg}' twice; keep one")
        else:
            options[keyword.arg] = value
    return options
