from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Step, Transform
from holdfast.vector import Vector


@part("gc", cites="yong2020")
class Gc(Part, Transform):
    """Gradient centralisation: subtracts each output channel's mean from the data gradient.

    g_o <- g_o - mean(g_o) for every row o of a tensor of two dimensions or more.  Yong et al. 2020, eq. 1.
    A control for spectral filters, which remove nearly all of these means.
    """

    def transform(self, g: Vector, s: Step) -> Vector:
        return s.layout.map(
            lambda _, t: t - t.flatten(1).mean(1).view(-1, *[1] * (t.dim() - 1)) if t.dim() > 1 else t, g
        )
