from __future__ import annotations

from typing import Literal

from holdfast import spectrum
from holdfast.method import Part, part
from holdfast.slots import Perturb, Step
from holdfast.vector import Vector


@part("gcpert", cites="yong2020")
class GcPert(Part, Perturb):
    """Centralises SAM's perturbation instead of the gradient: a control for FedFFT.

    e_o <- e_o - mean(e_o), after Yong et al. 2020, eq. 1.  per and match as in gc.  Private tensors stay as they are.
    """

    per: Literal["channel", "kernel", "tensor", "live"] = "channel"
    match: Literal["none", "tensor", "model"] = "none"

    def perturb(self, e: Vector, s: Step) -> Vector:
        return spectrum.within(s.layout, lambda _, t: spectrum.centred(t, self.per), e, self.match)
