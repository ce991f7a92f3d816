from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Descend, Step
from holdfast.vector import Record, Vector


@part("wd", cites="krogh1991")
class Wd(Part, Descend):
    """Weight decay on every trainable tensor, after clipping and at the unperturbed w: g + wd w."""

    wd: float = 1e-3
    ranges = {"wd": ">= 0"}
    neutral = {"wd": 0.0}
    rank = 2

    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        return g + self.wd * s.w, carry
