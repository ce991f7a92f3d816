"""What a comparison was asked for: checked, kept in `compare.toml`, and held against what a resumed one is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from holdfast import tomlfile
from holdfast.errors import Problem, Refused
from holdfast.experiment import Run
from holdfast.options import attempt, numbers, positive, whole
from holdfast.recorded import ADVICE, missing, opened, option_problems, writer
from holdfast.results import merged
from holdfast.text import parse

FILE = "compare.toml"
EXTRAS = ("methods", "seeds", "target")  # what a run has no use for
SEEDS = 3


@dataclass(frozen=True)
class Wanted:
    """The methods as they were written, the first being the baseline, and what all their runs share."""

    methods: tuple[Any, ...]
    seeds: Any
    target: Any
    base: Run

    @staticmethod
    def of(values: Mapping[str, Any]) -> Wanted:
        """Of options as a file or the command line has them; nothing is checked yet."""
        left = dict(values)
        methods, seeds, target = left.pop("methods", ""), left.pop("seeds", SEEDS), left.pop("target", None)
        return Wanted(listed(methods), seeds, target, Run(**left))

    @property
    def texts(self) -> list[str]:
        """The methods in canonical form, by which they are equal; those that can be read."""
        found = (attempt([], lambda m=m: str(parse(m))) for m in self.methods if isinstance(m, str))
        return [text for text in found if text is not None]

    def problems(self) -> list[str]:
        """What is wrong, the options of the runs aside."""
        found = [text for key in ("methods", "seeds", "target") for text in alone(key, getattr(self, key))]
        if whole(self.seeds, 1) and whole(self.base.seed, 0) and self.base.seed + self.seeds > 2**64:
            found.append(Problem(f"seeds={self.seeds} from seed={self.base.seed} go beyond 2^64 - 1", "seeds"))
        return found


def listed(methods: Any) -> tuple[Any, ...]:
    """One text with ';' or a list of texts; without line breaks, for they stand in a table."""
    if not isinstance(methods, str | list | tuple):
        return (methods,)
    parts = methods.split(";") if isinstance(methods, str) else methods
    neat = [" ".join(part.split()) if isinstance(part, str) else part for part in parts]
    return tuple(part for part in neat if part != "")


def alone(key: str, value: Any) -> list[str]:
    """What is wrong with one of the options that only a comparison has."""
    if key == "methods":
        return methods_problems(listed(value))
    if key == "seeds":
        return [] if whole(value, 1) else [Problem(f"seeds={value!r} must be a whole number of at least 1", key)]
    if value is None or (positive(value) and value <= 1):
        return []
    share = f"{value / 100:g}" if positive(value) and value <= 100 else "0.9"
    return [Problem(f"target={value!r} must be a number above 0 and at most 1; it is a share: {share}", key)]


def methods_problems(methods: tuple[Any, ...]) -> list[str]:
    found: list[str] = []
    texts: list[str | None] = []
    for method in methods:
        if isinstance(method, str):
            texts.append(attempt(found, lambda method=method: str(parse(method)), "methods"))
        else:
            kind = type(method).__name__
            found.append(Problem(f"methods has {method!r}, a {kind}; give texts such as 'fedavg; scaffold'", "methods"))
    double = [text for text in dict.fromkeys(texts) if text and texts.count(text) > 1]
    found += [
        Problem(f"{text} stands {texts.count(text)} times among the methods; keep one", "methods") for text in double
    ]
    if not methods:
        found.append(Problem('there is nothing to compare; give --methods "fedavg; scaffold"', "methods"))
    return found


def write(wanted: Wanted) -> str:
    """`compare.toml`: a file that `holdfast compare` takes."""
    run = {key: value for key, value in wanted.base.texts().items() if key != "method"}
    table = {"methods": wanted.methods, "seeds": wanted.seeds, "target": wanted.target, **run}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items() if value is not None]
    return "\n".join(["# Written by holdfast: what was asked.", *lines, "", *writer()]) + "\n"


def read(out: Path) -> Wanted:
    path = out / FILE
    if not path.exists():
        raise Refused(missing(out, FILE, "comparison"))
    file = tomlfile.read(path, ADVICE)
    stored = {key: value for key, value in file.tables.items() if key != "writer"}
    own = {key: value for key, value in stored.items() if key not in EXTRAS}
    problems = [f"{path} lacks {key}" for key in ("methods", "seeds") if key not in stored]
    problems += option_problems(file, {"method": "", **own})
    if not problems:
        wanted = Wanted.of(stored)
        found = dict.fromkeys(wanted.problems() + numbers(wanted.base))
        problems = [f"{file.place(getattr(text, 'option', ''))}: {text}" for text in found]
    if problems:
        raise Refused(*problems, advice=ADVICE)
    return Wanted.of(stored)


def resumed(out: Path, values: Mapping[str, Any]) -> Wanted:
    """What the folder was asked for. What is given again must agree; rounds, seeds and methods may become more."""
    old, new = read(out), Wanted.of(values)
    found: list[str] = []
    given = {key for key in values if key in {f.name for f in fields(Run)}}
    base = attempt(found, lambda: merged(new.base, stored(old), given, out / FILE, planned(out)))
    for key in sorted({"methods", "seeds", "target"} & set(values)):
        wrong = alone(key, getattr(new, key))
        found += wrong or differs(key, old, new, out / FILE)
    if found or base is None:
        raise Refused(*found, advice="resume with the same options, or start anew with another --out")
    more = new.methods[len(old.methods) :] if "methods" in values else ()
    seeds = new.seeds if "seeds" in values else old.seeds
    return replace(old, methods=old.methods + more, seeds=seeds, base=base)


def stored(old: Wanted) -> dict[str, Any]:
    return {f.name: getattr(old.base, f.name) for f in fields(Run)}


def differs(key: str, old: Wanted, new: Wanted, path: Path) -> list[str]:
    if key == "methods" and new.texts[: len(old.texts)] != old.texts:
        was, now = "; ".join(old.methods), "; ".join(new.methods)
        return [Problem(f"methods is '{was}' in {path} and '{now}' now; name the same first, more may follow", key)]
    if key == "seeds" and new.seeds < old.seeds:
        return [Problem(f"seeds is {old.seeds} in {path} and {new.seeds} now; it can only grow", key)]
    if key == "target" and new.target != old.target:
        was = "what the first method reaches" if old.target is None else old.target
        return [Problem(f"target is {was} in {path} and {new.target} now", key)]
    return []


def planned(out: Path) -> Any:
    """How the first of its runs was planned, if there is one."""
    runs = (attempt([], lambda path=path: opened(path.parent)) for path in sorted(out.glob("*/*/run.toml")))
    return next((stored[1] for stored in runs if stored), None)
