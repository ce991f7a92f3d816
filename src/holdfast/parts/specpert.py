from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast import noise, spectrum
from holdfast.method import Part, part
from holdfast.slots import Perturb, Step
from holdfast.vector import Vector


@part("specpert", cites="fedfft2026")
class SpecPert(Part, Perturb):
    """Removes the lowest frequencies of every tensor's SAM perturbation, which is not scaled back to its radius.

    e <- HP_r(e) tensor by tensor.  FedFFT, alg. 1, eq. 5-8.  Private tensors are perturbed unfiltered.
    Controls: band (other bins; number `draw`), match (as long as before, so that the radius is rho again).
    scope: which tensors, or words in their names; min_bins: at least so many go, of a short tensor too.
    """

    r: float = 0.01
    band: Literal["low", "high", "random", "fresh"] = "low"
    match: Literal["none", "tensor", "model"] = "none"
    draw: int = 0
    scope: str = "all"
    min_bins: Literal[0, 1] = 0
    ranges = {"r": "in [0, 1]"}
    neutral = {"r": 0.0, "min_bins": 0}

    def perturb(self, e: Vector, s: Step) -> Vector:
        spectrum.require_scope(s.layout, self.scope, "specpert")
        key = s.key if self.band == "fresh" else noise.fold(torch.zeros_like(s.key) + self.draw, self.tag)

        def one(name: str, t: Tensor) -> Tensor:
            own = noise.fold(key, s.layout.names.index(name))
            return spectrum.highpass(t, self.r, self.band, own, self.min_bins)

        return spectrum.within(s.layout, one, e, self.match, self.scope)
