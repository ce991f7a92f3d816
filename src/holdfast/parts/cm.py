from __future__ import annotations

from typing import Literal

from holdfast.method import Part, part
from holdfast.slots import Cast, Correct, Round, Step, Transform, Update, zeros
from holdfast.vector import Record, Vector


@part("cm", cites="xu2021")
class Cm(Part, Cast, Transform, Correct, Update):
    """Client-level momentum: mixes each local gradient with the last round's mean gradient.

    alpha g + (1 - alpha) D;  D <- -mean(w_i - w^t) / (K lr), with the lr that made the updates and, where clients take
    different numbers of steps, K = sum p_k K_k.  Xu et al. 2021, alg. 1.  Round 1 has D = 0, so its step is alpha lr.
    form 'unscaled': g + (1 - alpha) D, as the MoFedSAM of FedLESAM's code has it.
    """

    alpha: float = 0.1
    form: Literal["paper", "unscaled"] = "paper"
    ranges = {"alpha": "in [0, 1]"}
    neutral = {"alpha": 1.0}
    state = {"d": zeros}
    observes = frozenset({Cast, Update})
    excludes = {
        "nova": "cm divides the mean update by the steps, and nova has already done so; drop one",
        "init": "cm reads the mean gradient off the updates, and init measures them from elsewhere; drop one",
        "speed": "cm reads the mean gradient off the updates, and speed adds its duals to them; take dyn + sam",
    }

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        return w, st

    def transform(self, g: Vector, s: Step) -> Vector:
        return self.alpha * g if self.form == "paper" else g

    def correct(self, s: Step) -> Vector:
        return (1 - self.alpha) * s.down["d"]

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        steps = (r.weights @ r.cards["span"]).clamp(min=1)
        return delta, {"d": -r.weighted / (steps * r.lr)}
