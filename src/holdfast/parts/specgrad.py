from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast import noise, spectrum
from holdfast.method import Method, Part, part
from holdfast.slots import Descend, Step, Transform
from holdfast.vector import Record, Vector


@part("specgrad", cites="yuan2026")
class SpecGrad(Part, Transform, Descend):
    """Removes the lowest frequencies of every tensor's data gradient; corrections stay unfiltered.

    g_l <- HP_r(g_l): flatten row-major, zero the lowest floor(r L) rFFT bins, transform back.
    SpecGradFilter, alg. 1, eq. 6-7.  Where floor(r L) = 0 a tensor passes untouched.  The removed bins never change,
    but for weight decay.
    kind: 'lap', 'gauss': less a moving average or Gaussian smoothing of `width` (0: matched to r); 'fft2': by kernel,
    at least its mean.  Controls: band, order of a convolution's axes, on (corrections too), match (as long as before).
    scope: which tensors, or words in their names, such as 'patch'.
    """

    r: float = 0.05
    kind: Literal["fft", "lap", "gauss", "fft2"] = "fft"
    band: Literal["low", "high", "random", "fresh"] = "low"
    order: str = "natural"
    scope: str = "all"
    on: Literal["data", "all"] = "data"
    match: Literal["none", "tensor", "model"] = "none"
    width: float = 0.0
    draw: int = 0
    min_bins: Literal["auto", 0, 1] = "auto"
    on_1x1: Literal["skip", "zero", "hp1d"] = "skip"
    ranges = {"r": "in [0, 1]", "width": ">= 0"}
    only = {Transform: ("on", "data"), Descend: ("on", "all")}
    neutral = {"r": 0.0, "min_bins": 0, "width": 0.0}

    def refuses(self, method: Method) -> str | None:
        if self.on == "all" and any(getattr(p, "scope", "") == "data_only" for p in method.parts if p is not self):
            return "specgrad(on='all') filters what clip(scope='data_only') takes apart; take another scope"
        if idle := spectrum.idle(self):
            return f"specgrad(kind={self.kind!r}) has no use for {' and '.join(idle)}; leave that out"
        return None if spectrum.known_order(self.order) else f"specgrad(order={self.order!r}) is no order of four axes"

    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        return self.transform(g, s), carry

    def transform(self, g: Vector, s: Step) -> Vector:
        spectrum.require_scope(s.layout, self.scope, "specgrad")
        fixed = noise.fold(torch.zeros_like(s.key) + self.draw, self.tag)
        bins = s.key if self.band == "fresh" else fixed

        def one(name: str, t: Tensor) -> Tensor:
            drawn = (noise.fold(key, s.layout.names.index(name)) for key in (bins, fixed))
            return spectrum.removed(t, self, *drawn) if spectrum.within_scope(name, t.shape, self.scope) else t

        return spectrum.matched(s.layout, g, s.layout.map(one, g), self.match)
