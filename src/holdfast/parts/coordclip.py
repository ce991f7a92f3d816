from __future__ import annotations

from typing import Literal

from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Perturb, Step
from holdfast.vector import Vector


@part("coordclip", cites="fedfft2026")
class CoordClip(Part, Perturb):
    """Clips every coordinate of SAM's perturbation at a multiple of the median: a control of FedFFT (table 3).

    e_j <- clip(e_j, +-c median|e|), the median over the tensor or the model; a median of zero leaves it alone.
    The paper does not give the multiple.
    """

    c: float = 3.0
    per: Literal["tensor", "model"] = "tensor"
    ranges = {"c": "> 0"}
    jumps = True

    def perturb(self, e: Vector, s: Step) -> Vector:
        if self.per == "model":
            return self.clipped(e[..., : s.layout.size], e)
        return s.layout.map(lambda _, t: self.clipped(t, t), e)

    def clipped(self, of: Tensor, t: Tensor) -> Tensor:
        middle = of.abs().reshape(-1).sort().values[(of.numel() - 1) // 2]
        most = (self.c * middle).to(t.dtype)
        return t.clamp(-most, most).where(middle > 0, t)
