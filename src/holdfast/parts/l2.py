from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast import spectrum
from holdfast.method import Part, part
from holdfast.slots import Step, Transform
from holdfast.vector import Vector


@part("l2", cites="yuan2026")
class L2(Part, Transform):
    """Rescales the data gradient and filters nothing: SpecGradFilter's l2 control (table III).

    'filter': g_l <- g_l ||HP_r g_l||/||g_l||, each tensor as short as the filter would leave it; 'unit': every tensor
    as long as they are on average; 'cap': g <- g min(1, max/||g||) over the model.  The paper gives no formula: all
    three are here.
    """

    r: float = 0.05
    form: Literal["filter", "unit", "cap"] = "filter"
    max: float = 1.0
    ranges = {"r": "in [0, 1]", "max": "> 0"}
    jumps = True

    def transform(self, g: Vector, s: Step) -> Vector:
        if self.form == "cap":
            return g * (self.max / g.norm().clamp(min=1e-30)).clamp(max=1)
        if self.form == "filter":
            return s.layout.map(lambda _, t: t * spectrum.ratio(spectrum.highpass(t, self.r), t), g)
        lengths = torch.stack([t.norm() for t in s.layout.split(g).values()])
        mean = lengths.mean()

        def level(t: Tensor) -> Tensor:
            length = t.norm()
            some = length > 1e-6 * mean  # a tensor whose gradient is rounding noise is not blown up
            return t * torch.where(some, mean / torch.where(some, length, 1), 1)

        return s.layout.map(lambda _, t: level(t), g)
