from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast import noise, spectrum
from holdfast.method import Method, Part, part
from holdfast.slots import Close, Descend, Step, Transform, When, scalar
from holdfast.vector import Record, Vector


@part("specgrad", cites="yuan2026")
class SpecGrad(Part, Transform, Descend, Close):
    """Removes the lowest frequencies of every tensor's data gradient; corrections stay unfiltered.

    g_l <- HP_r(g_l): flatten row-major, zero the lowest floor(r L) rFFT bins, transform back.
    SpecGradFilter, alg. 1, eq. 6-7.  Where floor(r L) = 0 a tensor passes untouched.  The removed bins never change,
    but for weight decay.  kind: 'lap', 'block', 'gauss': less a moving average, block means, Gaussian smoothing of
    `width` (0: matched to r; pad: past the ends; short: tensors below it); 'fft2': by kernel, at least its mean.
    Controls: band, order of a convolution's axes ('random_client': each its own), on (corrections too), match.  scope:
    which tensors, or words in their names, such as 'patch'.
    """

    r: float = 0.05
    kind: Literal["fft", "lap", "block", "gauss", "fft2"] = "fft"
    band: Literal["low", "high", "random", "fresh"] = "low"
    order: str = "natural"
    scope: str = "all"
    on: Literal["data", "all"] = "data"
    match: Literal["none", "tensor", "model"] = "none"
    width: float = 0.0
    pad: Literal["circular", "reflect", "replicate", "zero"] = "circular"
    short: Literal["skip", "shrink"] = "skip"
    draw: int = 0
    min_bins: Literal["auto", 0, 1] = "auto"
    on_1x1: Literal["skip", "zero", "hp1d"] = "skip"
    ranges = {"r": "in [0, 1]", "width": ">= 0"}
    neutral = {"r": 0.0, "min_bins": 0, "width": 0.0}
    only = {Transform: ("on", "data"), Descend: ("on", "all"), Close: ("order", "random_client")}
    memory = {"key": When("order", ("random_client",), scalar(-1))}
    observes = frozenset({Close})

    def refuses(self, method: Method) -> str | None:
        return spectrum.refusal(self, method.parts)

    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        return self.transform(g, s), carry

    def transform(self, g: Vector, s: Step) -> Vector:
        own = noise.fold(torch.zeros_like(s.key) + self.draw, self.tag)
        keys = s.key if self.band == "fresh" else own, self.own(s) if s.mem else own
        return spectrum.filtered(s.layout, g, self, *keys)

    def own(self, s: Step) -> Tensor:  # drawn where a client first takes part, and kept
        return spectrum.kept_key(s.mem["key"], noise.fold(s.source, self.tag, self.draw))

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"key": self.own(s).to(s.w.dtype)}
