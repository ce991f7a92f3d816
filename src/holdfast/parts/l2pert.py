from __future__ import annotations

from typing import Literal

from holdfast import spectrum
from holdfast.method import Part, part
from holdfast.slots import Perturb, Step
from holdfast.vector import Vector


@part("l2pert", cites="fedfft2026")
class L2Pert(Part, Perturb):
    """Rescales SAM's perturbation and filters nothing: FedFFT's l2 control, and SAM at the radius the filter leaves.

    'filter': e <- e ||HP_r e||/||e|| over the model; 'cap': e <- e min(1, max/||e||).
    'cap' is that of FedFFT's table 3, which does nothing to an exact SAM of rho <= max.  Private tensors do not count
    and stay as they are.
    """

    r: float = 0.01
    form: Literal["filter", "cap"] = "filter"
    max: float = 0.1
    ranges = {"r": "in [0, 1]", "max": "> 0"}
    jumps = True

    def perturb(self, e: Vector, s: Step) -> Vector:
        shared = s.layout.shared(e)
        if self.form == "cap":
            scale = (self.max / shared.norm().clamp(min=1e-30)).clamp(max=1)
        else:
            scale = spectrum.ratio(s.layout.map(lambda _, t: spectrum.highpass(t, self.r), shared), shared)
        return spectrum.within(s.layout, lambda _, t: t * scale, e)
