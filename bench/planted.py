"""Mistakes that public code makes in SCAFFOLD and FedDyn, as parts: each is the right part but for one line.

They are made like parts and taken out of the registry, so no command knows them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from holdfast.method import REGISTRY, Method, Part, part
from holdfast.parts.dyn import Dyn
from holdfast.parts.scaffold import Scaffold
from holdfast.slots import Loss, Round, Step
from holdfast.text import parse
from holdfast.vector import Record, Vector


@dataclass(frozen=True)
class Mistake:
    """`part` stands in for `base`, beside `company`; None is the right one."""

    base: str
    about: str
    part: type[Part] | None = None
    company: str = ""

    def method(self, **options: Any) -> Method:
        """With those of the options that the part has."""
        right = parse(self.base).parts[0]
        cls = self.part or type(right)
        own = cls(**{key: value for key, value in options.items() if key in cls.hints()})
        return Method((own, *(parse(self.company).parts if self.company else ())))


MISTAKES: list[Mistake] = []


def planted(about: str, company: str = "") -> Callable[[type], Any]:
    def decorate(cls: type) -> Any:
        name = "wrong_" + cls.__name__.lower()
        made = part(name)(cls)
        del REGISTRY[name]
        base = "scaffold" if issubclass(made, Scaffold) else "dyn"
        MISTAKES.append(Mistake(base, about, made, company))
        return made

    return decorate


MISTAKES += [Mistake("scaffold", "none"), Mistake("scaffold", "none, beside momentum", None, "momentum(beta=0.5)")]


@planted("sign of the correction turned")
class Sign(Scaffold):
    def correct(self, s: Step) -> Vector:
        return -super().correct(s)


@planted("c_i is never stored")
class Lost(Scaffold):
    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        delta, up, _ = super().close(delta, s)
        return delta, up, s.mem


@planted("c is never updated")
class Still(Scaffold):
    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return delta, r.st


@planted("c moves by the mean over S, without |S|/N")
class Cohort(Scaffold):
    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return super().update(delta, replace(r, clients=r.cohort))


@planted("the changes of the c_i are weighted by n_i")
class Weighted(Scaffold):
    uplink: ClassVar[dict[str, Any]] = {"dc": "weighted"}


@planted("K of client 0 for all clients")
class FirstSteps(Scaffold):
    steps: float = 5.0

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return super().close(delta, replace(s, span=0 * s.span + self.steps))


@planted("divides by the first round's lr")
class FirstRate(Scaffold):
    rate: float = 0.1

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return super().close(delta, replace(s, lr=0 * s.lr + self.rate))


@planted("momentum's steps are counted as plain ones", company="momentum(beta=0.5)")
class PlainSteps(Scaffold):
    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return super().close(delta, replace(s, span=s.count))


# The two of FedEve's public code (MS 8). With both, c_i enters with the wrong sign, and c is S's mean gradient.


@planted("FedEve's code, 1: c - c_i' is stored for c_i'")
class InPlace(Scaffold):
    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        delta, up, kept = super().close(delta, s)
        return delta, up, {**kept, "c": s.down["c"] - kept["c"]}


@planted("FedEve's code, 2: c is set to the mean over S of the c_i'")
class MeanOfNew(Scaffold):
    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        delta, up, kept = super().close(delta, s)
        return delta, {**up, "dc": kept["c"]}, kept

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return delta, {"c": r.up["dc"]}


@planted("FedEve's code, 1 and 2")
class Both(MeanOfNew):
    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        delta, up, kept = super().close(delta, s)
        return delta, up, {**kept, "c": s.down["c"] - kept["c"]}


MISTAKES.append(Mistake("dyn", "none"))


@planted("sign of the dual turned")
class DualSign(Dyn):
    def correct(self, s: Step) -> Vector:
        return self.alpha * (s.w - s.anchor - s.mem["h"])


@planted("the quadratic term is missing")
class NoQuadratic(Dyn):
    def correct(self, s: Step) -> Vector:
        return self.alpha * s.mem["h"]


@planted("the quadratic term is in the loss and carries no gradient")
class NoGradient(Dyn, Loss):
    def loss(self, s: Step) -> Tensor:
        return 0.5 * self.alpha * (s.w.detach() - s.anchor).square().sum()

    def correct(self, s: Step) -> Vector:
        return self.alpha * s.mem["h"]


@planted("the norm is not squared: (alpha/2) ||w - w^t||")
class NotSquared(Dyn):
    def correct(self, s: Step) -> Vector:
        away = s.w - s.anchor
        return self.alpha * (s.mem["h"] + 0.5 * away / away.norm().clamp(min=1e-12))


@planted("alpha is missing in front of the dual")
class NoAlpha(Dyn):
    def correct(self, s: Step) -> Vector:
        return s.mem["h"] + self.alpha * (s.w - s.anchor)


@planted("h_i is never stored")
class LostDual(Dyn):
    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        delta, up, _ = super().close(delta, s)
        return delta, up, s.mem


@planted("the server's dual moves by the mean over S, without |S|/N")
class DualCohort(Dyn):
    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return super().update(delta, replace(r, clients=r.cohort))


@planted("no dual at the server: the plain mean")
class NoDual(Dyn):
    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return delta, r.st


@planted("as printed, without parentheses: (sum_S w_i) - w^t for sum_S (w_i - w^t)")
class NoParentheses(Dyn):
    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        h = r.st["h"] + (r.deltas.sum(0) + (r.cohort - 1) * r.w) / r.clients
        return delta + h, {"h": h}
