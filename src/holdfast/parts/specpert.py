from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Perturb, Step
from holdfast.spectrum import highpass
from holdfast.vector import Vector


@part("specpert", cites="fedfft2026")
class SpecPert(Part, Perturb):
    """Removes the lowest frequencies of every tensor's SAM perturbation, which is not scaled back to its radius.

    e <- HP_r(e) tensor by tensor.  FedFFT, alg. 1, eq. 5-8.  Private tensors are perturbed unfiltered.
    """

    r: float = 0.01
    ranges = {"r": "in [0, 1]"}
    neutral = {"r": 0.0}

    def perturb(self, e: Vector, s: Step) -> Vector:
        private = s.layout.private
        return s.layout.map(lambda name, t: t if name in private else highpass(t, self.r), e)
