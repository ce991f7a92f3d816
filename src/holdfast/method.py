"""Parts and their sum, the method; the rules of composition that need no model."""

from __future__ import annotations

import dataclasses
import heapq
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType

from typing import (  # isort: skip
    TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Union, cast, dataclass_transform, get_args, get_origin,
    get_type_hints,
)  # fmt: skip

from torch import Tensor

from holdfast import noise
from holdfast.errors import Refused

from holdfast.slots import (  # isort: skip
    ORDERED, SINGLE, SLOTS, Ascend, Cast, Correct, Descend, Entries, Frozen, Init, Merge, Perturb, Private, Weigh,
    When,
)  # fmt: skip

if TYPE_CHECKING:
    from holdfast.task import Task

Slot = TypeVar("Slot")
LARGEST = sys.float_info.max


class Part:
    """A frozen dataclass that fills one to four slots; its fields are its options, the papers' letters."""

    name: ClassVar[str]
    tag: ClassVar[int]
    cites: ClassVar[str]
    memory: ClassVar[Entries] = {}  # kept by a client between rounds
    state: ClassVar[Entries] = {}  # kept by the server
    carry: ClassVar[Entries] = {}  # lives for one local run
    uplink: ClassVar[Mapping[str, Literal["mean", "weighted", "sum"]]] = {}  # extras sent up, and their reduction
    ranges: ClassVar[Mapping[str, str]] = {}  # bounds of options: ">= 0", "> 0", "in [0, 1)"
    neutral: ClassVar[Mapping[str, float]] = {}  # options at which the part changes nothing
    excludes: ClassVar[Mapping[str, str]] = {}  # other part -> reason
    only: ClassVar[Mapping[type, tuple[str, object]]] = {}  # slots filled only where an option has that value
    observes: ClassVar[frozenset[type]] = frozenset()  # ordered slots in which it hands its value through unchanged
    equal: ClassVar[bool] = False  # clients weigh equally unless a part says otherwise
    shows: ClassVar[tuple[str, ...]] = ()  # scalars of `state` that stand in every round's metrics
    jumps: ClassVar[bool] = False  # its result jumps somewhere, so rounding can take two executors apart

    def __post_init__(self) -> None:
        problems: list[str] = []
        for field in dataclasses.fields(cast(Any, self)):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                continue
            value, problem = fitted(value, self.hints()[field.name], self.ranges.get(field.name, ""))
            object.__setattr__(self, field.name, value)
            if problem:
                problems.append(f"{self.name}({field.name}={value!r}): {field.name} {problem}")
        if problems:
            raise Refused(*problems)

    @classmethod
    def hints(cls) -> dict[str, Any]:
        return HINTS[cls]

    @classmethod
    def slots(cls) -> tuple[type, ...]:
        return tuple(slot for slot in SLOTS if issubclass(cls, slot))

    def fills(self, slot: type) -> bool:
        option, value = self.only.get(slot, ("", None))
        return isinstance(self, slot) and (not option or getattr(self, option) == value)

    def options(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(cast(Any, self))}

    def kept(self, kind: Literal["memory", "state", "carry"]) -> dict[str, Init]:
        """The initialisers that hold under this part's options."""
        chosen: dict[str, Init] = {}
        for key, entry in cast(Entries, getattr(self, kind)).items():
            if not isinstance(entry, When):
                chosen[key] = entry
            elif getattr(self, entry.option) in entry.values:
                chosen[key] = entry.init
        return chosen

    def bound(self, options: Mapping[str, Tensor]) -> Part:
        return dataclasses.replace(cast(Any, self), **options) if options else self

    def text(self, full: bool = False) -> str:
        fields = dataclasses.fields(cast(Any, self))
        shown = [f for f in fields if full or getattr(self, f.name) != f.default]
        return self.name + (f"({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})" if shown else "")

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def __add__(self, other: Part | Method) -> Method:
        return Method((self,)) + other

    def refuses(self, method: Method) -> str | None:
        """A reason not to stand in this method that `excludes` cannot say; None if there is none."""
        return None


REGISTRY: dict[str, type[Part]] = {}
HINTS: dict[type[Part], dict[str, Any]] = {}
P = TypeVar("P", bound=Part)


@dataclass_transform(frozen_default=True)
def part(name: str, cites: str = "") -> Callable[[type[P]], type[P]]:
    """Makes a class a part of that name. `cites` is a key of `parts/references.py`."""

    def decorate(cls: type[P]) -> type[P]:
        cls.__doc__ = cls.__doc__ or ""
        made = dataclass(frozen=True, repr=False)(cls)
        made.name, made.tag, made.cites = name, noise.tag(name), cites
        old = REGISTRY.get(name)
        if old is not None and inspect.getsourcefile(old) != inspect.getsourcefile(cls):
            raise Refused(f"two parts are named '{name}': {old.__module__} and {cls.__module__}; rename one")
        REGISTRY[name] = made
        types = get_type_hints(made)
        HINTS[made] = {f.name: types[f.name] for f in dataclasses.fields(cast(Any, made))}
        return made

    return decorate


def fitted(value: Any, hint: Any, bounds: str) -> tuple[Any, str]:
    """The value as its type wants it, and what is wrong with it, if anything."""
    if get_origin(hint) is Literal:
        allowed = get_args(hint)
        same = any(type(value) is type(one) and value == one for one in allowed)  # True and 1.0 are not 1
        return value, "" if same else f"must be one of {', '.join(map(repr, allowed))}"
    if get_origin(hint) in (Union, UnionType):  # a number or a word: whichever fits
        tried = [fitted(value, one, bounds if one is float else "") for one in get_args(hint)]
        return next(((v, "") for v, problem in tried if not problem), (value, " or ".join(p for _, p in tried)))
    if hint is float and type(value) in (int, float) and abs(value) <= LARGEST:
        value = float(value) + 0.0  # -0.0 equals 0.0, so it must be written like it
    if type(value) is not hint:
        return value, f"must be a {getattr(hint, '__name__', hint)}"
    if isinstance(value, float) and not math.isfinite(value):
        return value, "must be finite"
    return value, "" if within(value, bounds) else f"must be {bounds}"


def within(value: Any, bounds: str) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if not bounds:
        return True
    interval = re.fullmatch(r"in ([\[(])(\S+), (\S+)([\])])", bounds)
    if interval:
        left, low, high, right = interval.groups()
        above = value >= float(low) if left == "[" else value > float(low)
        return above and (value <= float(high) if right == "]" else value < float(high))
    sign, bound = bounds.split()
    return value >= float(bound) if sign == ">=" else value > float(bound)


@dataclass(frozen=True, repr=False)
class Method:
    """A sum of parts in canonical order. Equality, hash and text follow from it."""

    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        problems = list(refusals(self))
        if problems:
            raise Refused(" + ".join(map(str, self.parts)) + "".join(f"\n  - {p}" for p in problems))
        object.__setattr__(self, "parts", canonical(self.parts))

    def __add__(self, other: Part | Method) -> Method:
        return Method(self.parts + (other.parts if isinstance(other, Method) else (other,)))

    def __radd__(self, other: Part) -> Method:
        return Method((other,)) + self

    def text(self, full: bool = False) -> str:
        """With every option if `full`, so that a later default cannot change what it means."""
        return " + ".join(part.text(full) for part in self.parts) or "fedavg"

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def slot(self, slot: type[Slot]) -> list[Slot]:
        """The parts that fill a slot, in the order in which they act; those that only look at its value come last."""

        def turn(p: Any) -> int:
            return p.rank if slot is Descend else int(slot in p.observes)

        found: list[Any] = [p for p in self.parts if p.fills(slot)]
        return sorted(found, key=turn)

    @property
    def equal(self) -> bool:
        return any(p.equal for p in self.parts)

    def floats(self) -> dict[str, dict[str, float]]:
        """The options that may be tensors: annotated `float`, so that their values need no compilation."""
        return {
            p.name: {key: v for key, v in p.options().items() if float in (p.hints()[key], type(v))} for p in self.parts
        }

    def bound(self, options: Mapping[str, Mapping[str, Tensor]]) -> Method:
        """The same method with tensors for options; its checks and order are not gone through again."""
        method = object.__new__(Method)
        object.__setattr__(method, "parts", tuple(p.bound(options.get(p.name, {})) for p in self.parts))
        return method

    def stiffness(self) -> Any:
        """The sum of A over the terms A (w - a)."""
        return sum(getattr(p, p.stiffness) for p in self.slot(Correct) if p.stiffness)

    def span(self, count: Tensor) -> Tensor:
        for p in self.slot(Descend):
            count = p.span(count).to(count.dtype)
        return count

    def uplink(self, name: str) -> Mapping[str, str]:
        return next(p.uplink for p in self.parts if p.name == name)

    def fit(self, task: Task) -> Task:
        """The task without the tensors that nobody trains, and with those private that never leave a client."""
        task = task.without(tuple(name for p in self.slot(Frozen) for name in p.frozen(task.layout)))
        return task.keeping(tuple(name for p in self.slot(Private) for name in p.private(task.layout)))


def refusals(method: Method) -> list[str]:
    """Why these parts cannot stand together: all reasons."""
    parts = method.parts
    names = [p.name for p in parts]
    found = [
        f"'{n}' stands {names.count(n)} times; a part may stand once"
        for n in dict.fromkeys(names)
        if names.count(n) > 1
    ]
    for slot in SINGLE:
        own = list(dict.fromkeys(p.name for p in parts if p.fills(slot)))
        if len(own) > 1:
            found.append(
                f"{' and '.join(map(repr, own))} both fill '{slot.__name__.lower()}', which takes one part; keep one"
            )
    movers = [p.name for p in parts if isinstance(p, Cast) and Cast not in p.observes]
    if len(movers) > 1:
        found.append(f"{' and '.join(map(repr, movers))} both move the point that is sent; keep one")
    pairs = {frozenset((p.name, o)): why for p in parts for o, why in p.excludes.items() if o in names}
    found += [f"'{min(pair)}' cannot stand with '{max(pair)}': {why}" for pair, why in pairs.items()]
    found += [reason for p in parts if (reason := p.refuses(method))]
    weights = [p.name for p in parts if p.fills(Weigh)]
    found += [f"'{p.name}' counts every client once, so '{weights[0]}' would change nothing; drop one of the two"
              for p in parts if isinstance(p, Merge) and p.counts and weights]  # fmt: skip
    if any(isinstance(p, Perturb) for p in parts) and not any(isinstance(p, Ascend) for p in parts):
        alone = " and ".join(repr(p.name) for p in parts if isinstance(p, Perturb))
        found.append(f"{alone} changes a perturbation, and nothing makes one; add sam, asam or lesam")
    return found


def canonical(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The alphabetically smallest order that keeps text order between parts that share an ordered slot.

    So that `scaffold + specgrad` and `specgrad + scaffold`, which are the same method, are equal.
    """

    def act(p: Part) -> set[type]:
        return {slot for slot in ORDERED if p.fills(slot) and slot not in p.observes}

    after = {i: [j for j in range(i + 1, len(parts)) if act(parts[i]) & act(parts[j])] for i in range(len(parts))}
    waits = [sum(j in later for later in after.values()) for j in range(len(parts))]
    ready = [(parts[i].name, i) for i in range(len(parts)) if not waits[i]]
    heapq.heapify(ready)
    order: list[Part] = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(parts[i])
        for j in after[i]:
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, (parts[j].name, j))
    return tuple(order)


__all__ = ["REGISTRY", "Method", "Part", "Weigh", "canonical", "part"]
