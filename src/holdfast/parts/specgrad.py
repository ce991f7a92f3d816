from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Step, Transform
from holdfast.spectrum import highpass
from holdfast.vector import Vector


@part("specgrad", cites="yuan2026")
class SpecGrad(Part, Transform):
    """Removes the lowest frequencies of every tensor's data gradient; corrections stay unfiltered.

    Flatten row-major, zero the lowest floor(r L) rFFT bins, transform back.  SpecGradFilter, alg. 1, eq. 6-7.
    A tensor with floor(r L) = 0 passes untouched.  The removed bins never change, but for weight decay.
    """

    r: float = 0.05
    ranges = {"r": "in [0, 1]"}
    neutral = {"r": 0.0}

    def transform(self, g: Vector, s: Step) -> Vector:
        return s.layout.map(lambda _, t: highpass(t, self.r), g)
