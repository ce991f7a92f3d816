from __future__ import annotations

from typing import Literal

from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Descend, Step
from holdfast.vector import Record, Vector


@part("clip", cites="pascanu2013")
class Clip(Part, Descend):
    """Shortens a gradient that is longer than `max`.

    v <- v min(1, max/(||v|| + 1e-6)), one norm over the model.
    scope says what is clipped when terms A (w - a) stand beside the data gradient:
    'official': all but A w, which the codes of FedDyn and FedSMOO move into the weight decay; 'prox_inside': all;
    'data_only': the data gradient.
    """

    max: float = 10.0
    scope: Literal["official", "prox_inside", "data_only"] = "official"
    ranges = {"max": "> 0"}
    rank = 1
    jumps = True

    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        if self.scope == "official":
            pull = s.layout.shared(s.stiffness * s.w)  # no term pulls at private entries
            return self.shorten(g - pull) + pull, carry
        if self.scope == "prox_inside":
            return self.shorten(g), carry
        return self.shorten(s.data) + (g - s.data), carry

    def shorten(self, v: Tensor) -> Tensor:
        return v * (self.max / (v.norm() + 1e-6)).clamp(max=1)
