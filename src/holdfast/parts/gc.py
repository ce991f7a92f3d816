from __future__ import annotations

from typing import Literal

from holdfast import spectrum
from holdfast.method import Part, part
from holdfast.slots import Step, Transform
from holdfast.vector import Vector


@part("gc", cites="yong2020")
class Gc(Part, Transform):
    """Gradient centralisation: subtracts each output channel's mean from the data gradient.

    g_o <- g_o - mean(g_o) for every row o of a tensor of two dimensions or more.  Yong et al. 2020, eq. 1.
    A control for spectral filters, which remove nearly all of these means.  per: the mean of an output channel, of one
    (out, in) 'kernel', of a 'tensor', or of a channel over 'live' taps, those of a convolution that see data at all.
    match: as long as before.
    """

    per: Literal["channel", "kernel", "tensor", "live"] = "channel"
    match: Literal["none", "tensor", "model"] = "none"

    def transform(self, g: Vector, s: Step) -> Vector:
        return spectrum.matched(s.layout, g, s.layout.map(lambda _, t: spectrum.centred(t, self.per), g), self.match)
