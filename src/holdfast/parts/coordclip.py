from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast import spectrum
from holdfast.method import Part, part
from holdfast.slots import Perturb, Step
from holdfast.vector import Vector


@part("coordclip", cites="fedfft2026")
class CoordClip(Part, Perturb):
    """Clips every coordinate of SAM's perturbation at a multiple of the median: a control of FedFFT (table 3).

    e_j <- clip(e_j, +-c median|e|), the median over the tensor or the model; a median of zero leaves it alone.
    The paper does not give the multiple.  Private tensors stay as they are and do not count.
    """

    c: float = 3.0
    per: Literal["tensor", "model"] = "tensor"
    ranges = {"c": "> 0"}
    jumps = True

    def perturb(self, e: Vector, s: Step) -> Vector:
        shared = [t.reshape(-1) for name, t in s.layout.split(e).items() if name not in s.layout.private]
        model = torch.cat(shared) if self.per == "model" else None
        return spectrum.within(s.layout, lambda _, t: self.clipped(t if model is None else model, t), e)

    def clipped(self, of: Tensor, t: Tensor) -> Tensor:
        middle = of.abs().reshape(-1).sort().values[(of.numel() - 1) // 2]
        most = (self.c * middle).to(t.dtype)
        return t.clamp(-most, most).where(middle > 0, t)
