from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Correct, Step
from holdfast.vector import Vector


@part("prox", cites="li2020")
class Prox(Part, Correct):
    """Pulls each client towards the point that the server sent.

    g + mu (w - w^t): the gradient of mu/2 ||w - w^t||^2, squared norm.  Li et al. 2020, eq. 2.
    """

    mu: float = 0.1
    ranges = {"mu": ">= 0"}
    neutral = {"mu": 0.0}
    stiffness = "mu"

    def correct(self, s: Step) -> Vector:
        return self.mu * (s.w - s.anchor)
