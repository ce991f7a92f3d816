"""What there is to say of every part and preset, read off the parts themselves: for `holdfast parts` and the docs.

A part's docstring says in its first line what it does; then its equation, its source, and what else matters. Sentences
end with a point and two spaces or a line break, so that formulas may hold points.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

import torch

from holdfast.check import measured
from holdfast.errors import Refused
from holdfast.explain import ALWAYS, pipeline
from holdfast.method import Method, Part
from holdfast.models import zoo
from holdfast.parts import REGISTRY
from holdfast.presets import PRESETS
from holdfast.references import bibtex
from holdfast.slots import SINGLE
from holdfast.task import Batch, Task
from holdfast.text import parse

MODEL, SHAPE, CLASSES = "mlp", (1, 28, 28), 10
REFERENCE = f"{MODEL} for {SHAPE[1]} x {SHAPE[2]} grey images of {CLASSES} classes"
COMPANY = ("", "sam", "dyn", "scaffold", "dyn + sam")  # beside which a part that cannot stand alone is shown
SOURCE = re.compile(r"\b(19|20)\d\d\b|\b(alg|eq|sec|table)\. ?\d|\b(ML|MS|AD|DE) [A-Z]?\d")

FORMULA = re.compile(r"<-| = | ~ |\w [+/] \w")
INSIDE = re.compile(r"(.*(?:<-| = ).*?)(?:; |, )((?:after )?[A-Z].*)")  # a formula and its source in one sentence


class Words(NamedTuple):
    """A docstring taken apart."""

    what: str
    equation: str
    source: str
    notes: str


def words(cls: Any, cites: str = "") -> Words:
    """Of a part, or of anything else that has a docstring and names what it cites."""
    lines = [line.strip() for line in (cls.__doc__ or "").strip().splitlines()]
    first, *others = re.split(r"(?<=\.) {2,}", lines[0])
    rest = " ".join(line + (" " if line.endswith(".") else "") for line in lines[1:] if line)
    told = [text.strip() for text in others + re.split(r"(?<=\.) {2,}", rest) if text.strip()]
    at = next((i for i, text in enumerate(told) if SOURCE.search(text)), None)
    if at is None:
        at = sum(1 for text in told if FORMULA.search(text))
        told.insert(at, cited(cites or cls.cites))
    equation, source, notes = " ".join(told[:at]), told[at], " ".join(told[at + 1 :])
    if not equation and (inside := INSIDE.match(source)):
        equation, source = inside[1], inside[2]
    if not equation and (inside := re.search(r": (.*)", first)) and FORMULA.search(inside[1]):
        equation = inside[1]
    return Words(first, equation, source, notes)


def cited(key: str) -> str:
    """'Polyak 1964', from the bibliography; a part without a source says so."""
    if not key:
        return "no source"
    entry = bibtex(key)
    authors = re.search(r"author = \{(.*?)\},?\n", entry)
    year = re.search(r"year = \{(\d+)\}", entry)
    names = [name.split(",")[0].strip("{} ") for name in authors[1].split(" and ")] if authors else [key]
    who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{who} {year[1]}" if year else who


def options(cls: type[Part]) -> dict[str, dict[str, str]]:
    """Of every option its default and what it may be."""
    hints = cls.hints()
    return {
        field.name: {"default": repr(field.default), "range": values(hints[field.name], cls.ranges.get(field.name, ""))}
        for field in dataclasses.fields(cast(Any, cls))
    }


def values(hint: Any, bounds: str) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    if get_args(hint):  # a union
        return " or ".join(values(one, bounds if one in (int, float) else "") for one in get_args(hint))
    if hint is bool:
        return "True or False"
    kind = {float: "a number", int: "a whole number", str: "text"}.get(hint, getattr(hint, "__name__", str(hint)))
    return f"{kind} {bounds}".strip()


@cache
def reference() -> tuple[Task, Batch]:
    """The model on which costs are told, and two rows for it."""
    task = Task.of(zoo.build(MODEL, {}, SHAPE, CLASSES, 0))
    y = torch.zeros(2, dtype=torch.int64)
    return task, Batch(torch.zeros(2, *SHAPE), y, torch.ones_like(y, dtype=torch.bool))


class Cost(NamedTuple):
    """Of one client and round; the first four as multiples of the model."""

    down: float
    up: float
    memory: float
    state: float
    passes: int
    forwards: int
    needs: str  # of the server: "" or what it must have besides sums

    def text(self) -> str:
        parts = [f"down {self.down:g}", f"up {self.up:g}", f"memory {self.memory:g}", f"server {self.state:g}"]
        parts.append(f"passes {self.passes}")
        more = [f"forwards {self.forwards}"] if self.forwards else []
        return ", ".join(parts + more) + (f"; needs {self.needs}" if self.needs else "")


@cache
def cost(method: Method) -> Cost:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors: threads only wait for each other
    try:
        made = measured(method, *reference(), clients=100, cohort=2, device="cpu")  # real ones are faster than meta
    finally:
        torch.set_num_threads(threads)
    down, up, memory, state = (round(size / made.model, 2) for size in (made.down, made.up, made.memory, made.state))
    needs = ["individual updates"] * made.individual + ["samples at the server"] * made.proxy
    return Cost(down, up, memory, state, made.passes, made.forwards, " and ".join(needs))


def standing(name: str) -> tuple[str, Method]:
    """The method in which a part is shown: alone, or beside the least that it needs."""
    problems: list[str] = []
    for base in COMPANY:
        try:
            return base, parse(f"{base} + {name}" if base else name)
        except Refused as refused:
            problems = problems or list(refused.problems)
    raise Refused(*problems)


def excludes(cls: type[Part]) -> dict[str, str]:
    """Other part -> reason, whichever of the two says it; and the slots that take one part."""
    found = dict(cls.excludes)
    for other in REGISTRY.values():
        if cls.name in other.excludes:
            found.setdefault(other.name, other.excludes[cls.name])
    for slot in SINGLE:
        if issubclass(cls, slot):
            rivals = sorted(p.name for p in REGISTRY.values() if issubclass(p, slot) and p is not cls)
            found.update(
                {n: f"both fill {slot.__name__.lower()}, which takes one part" for n in rivals if n not in found}
            )
    return found


def of_part(name: str) -> dict[str, Any]:
    """Everything about one part."""
    cls = REGISTRY[name]
    part, said = cls(), words(cls)
    base, method = standing(name)
    tables = {kind: list(part.kept(kind)) for kind in ("memory", "state", "carry")}
    return {
        "part": name,
        "text": part.text(full=True),
        **said._asdict(),
        "slots": [slot.__name__.lower() for slot in cls.slots()],
        "beside": base,
        "cost": (paid := cost(method))._asdict(),
        "told_cost": paid.text(),
        "options": options(cls),
        **tables,
        "uplink": dict(cls.uplink),
        "neutral": dict(cls.neutral),
        "excludes": excludes(cls),
        "cites": [cls.cites] if cls.cites else [],
    }


def of_preset(name: str) -> dict[str, Any]:
    """Everything about one published name: its parts, and what they do together."""
    method = parse(name)
    cites = dict.fromkeys(p.cites for p in method.parts if p.cites)
    return {
        "preset": name,
        "method": PRESETS[name] or "fedavg",
        "parts": [p.name for p in method.parts],
        "what": " ".join(words(type(p)).what for p in method.parts) or "The plain average of what clients trained.",
        "slots": list(dict.fromkeys(step["slot"] for step in pipeline(method))),
        "pipeline": pipeline(method),
        "cost": (paid := cost(method))._asdict(),
        "told_cost": paid.text(),
        "cites": list(cites) or [ALWAYS],
    }


def of_ccvr() -> dict[str, Any]:
    """CCVR is a function of a finished run: no part, but a method that is looked for here."""
    from holdfast import ccvr

    hints = get_type_hints(ccvr.Options)
    bounds = {"samples": ">= 1", "epochs": ">= 1", "lr": "> 0", "batch": ">= 1"}  # as its own check has them
    return {
        "calibration": "ccvr",
        "text": "holdfast calibrate RUN --ccvr",
        **words(ccvr, "luo2021")._asdict(),
        "told_cost": "once, after the last round: up f + f(f + 1)/2 + 1 numbers a class (f features), down nothing",
        "options": {
            field.name: {"default": repr(field.default), "range": values(hints[field.name], bounds[field.name])}
            for field in dataclasses.fields(ccvr.Options)
        },
        "cites": ["luo2021"],
    }


def name_of(found: dict[str, Any]) -> str:
    return next(found[kind] for kind in ("part", "preset", "calibration") if kind in found)


def everything() -> Iterator[dict[str, Any]]:
    """Parts, then presets; a preset that only repeats a part's name is that part. Then CCVR, of a finished run."""
    for name in sorted(REGISTRY):
        yield of_part(name)
    for name in PRESETS:
        if name not in REGISTRY:
            yield of_preset(name)
    yield of_ccvr()
