"""What was asked for: a TOML file, `--set` over it, and the options of the command line over both."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.commands.options import EXTRAS, FIELDS
from holdfast.errors import Refused
from holdfast.tomlfile import places

KNOWN = FIELDS | EXTRAS
TABLES = ("run", "plan", "facts", "sheet", "writer")  # of a run.toml; a file of one's own has [run], or no table
KEPT = ("run.toml", "compare.toml")
ELSEWHERE = {"out": "--out runs/a", "resume": "--resume", "json": "--json", "debug": "--debug"}


class Value(NamedTuple):
    """An option, and where it was given: "e.toml, line 3", "--set", or "" for the command line itself."""

    key: str
    value: Any
    place: str


@dataclass(frozen=True)
class Asked:
    layers: tuple[Value, ...]  # later ones stand over earlier ones
    file: dict[str, Any]  # the options of the file alone
    whole: dict[str, Any]  # all its tables
    problems: tuple[str, ...] = ()  # unknown and doubled names

    @property
    def values(self) -> dict[str, Any]:
        return {v.key: v.value for v in self.layers}

    @property
    def places(self) -> dict[str, str]:
        return {v.key: v.place for v in self.layers}

    @property
    def beaten(self) -> list[Value]:
        """What something else stands over."""
        return [v for i, v in enumerate(self.layers) if any(v.key == w.key for w in self.layers[i + 1 :])]


def given(options: argparse.Namespace) -> Asked:
    """What was asked, and which names are unknown or doubled; values are checked by who knows what they mean."""
    problems: list[str] = []
    file, whole = read(getattr(options, "experiment", None), problems)
    layers = file + changes(getattr(options, "set", []), problems)
    layers += [Value(key, value, "") for key, value in vars(options).items() if key in KNOWN]
    return Asked(tuple(layers), {v.key: v.value for v in file}, whole, tuple(problems))


@contextlib.contextmanager
def placed(asked: Asked, alone: Callable[[str, Any], list[str]]) -> Iterator[None]:
    """Problems of a value that stands in a file name the line; a wrong value is refused whatever stands over it.

    `alone` tells what is wrong with one option.
    """

    def told(text: str, place: str) -> str:
        return f"{place}: {text}" if place else text

    if asked.problems or any(alone(v.key, v.value) for v in asked.beaten):
        values = dict.fromkeys(told(text, v.place) for v in asked.layers for text in alone(v.key, v.value))
        raise Refused(*asked.problems, *values)
    try:
        yield
    except Refused as refused:
        texts = (told(text, asked.places.get(getattr(text, "option", ""), "")) for text in refused.problems)
        raise Refused(*texts, advice=refused.advice) from refused


def changes(texts: list[str], problems: list[str]) -> list[Value]:
    """The values of `--set key=value`."""
    found: list[Value] = []
    for text in texts:
        name, equals, value = text.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or not key:
            problems.append(f"--set {text!r} is not of the form key=value")
        elif key not in KNOWN:
            problems.append(f"--set: {unknown(key)}")
        else:
            found.append(Value(key, literal(value.strip()), "--set"))
    return found


def literal(text: str) -> Any:
    """A value as TOML has it; anything else is text."""
    with contextlib.suppress(tomllib.TOMLDecodeError):
        found = tomllib.loads(f"value = {text}")
        if set(found) == {"value"}:
            return found["value"]
    return text


def unknown(key: str) -> str:
    if key in ELSEWHERE:
        return f"'{key}' is given on the command line: {ELSEWHERE[key]}"
    near = difflib.get_close_matches(key, KNOWN, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(KNOWN))}"
    return f"there is no option '{key}'; {hint}"


def read(path: str | None, problems: list[str]) -> tuple[list[Value], dict[str, Any]]:
    """The [run] table of a file (or its bare keys) with the line of each, and the whole file."""
    if path is None:
        return [], {}
    try:
        text = Path(path).read_text(encoding="utf-8")
        whole = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        inside = next((file for name in KEPT if (file := Path(path) / name).is_file()), None)
        hint = f"give {inside}" if inside else "it stands where a TOML file is expected, see --help"
        raise Refused(f"cannot read {path}: {said}; {hint}") from error
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"{path} is not TOML: {error}") from error
    bare = {key: value for key, value in whole.items() if not isinstance(value, dict)}
    table = whole.get("run", bare)
    if not isinstance(table, dict):
        raise Refused(f"{path}: run = {table!r} stands where options do; write [run] and the options below it")
    lines = places(path, text, "run" if "run" in whole else "")
    outside = places(path, text, "")
    if "run" in whole:
        problems += [f"{outside.get(key, path)}: '{key}' stands outside [run]; move it below [run]" for key in bare]
    problems += [
        f"{outside.get(f'[{key}]', path)}: there is no table [{key}]; options stand in [run], or in no table"
        for key in whole
        if key not in bare and key not in TABLES
    ]
    return rows(path, table, lines, problems), whole


def rows(path: str, table: dict[str, Any], lines: dict[str, str], problems: list[str]) -> list[Value]:
    """The options of a table, `lr-decay` being `lr_decay`."""
    found: dict[str, Value] = {}
    names: dict[str, str] = {}
    for name, value in table.items():
        key, place = name.replace("-", "_"), lines.get(name, path)
        if key in found:
            before = found[key].place
            problems.append(f"{before} and {place}: {names[key]} and {name} are one option; keep one of them")
        elif key not in KNOWN:
            problems.append(f"{place}: {unknown(key)}")
        else:
            found[key], names[key] = Value(key, value, place), name
    return list(found.values())
