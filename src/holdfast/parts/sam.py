from __future__ import annotations

from collections.abc import Callable

from holdfast.method import Part, part
from holdfast.slots import Ascend, Step
from holdfast.vector import Record, Vector


@part("sam", cites="foret2021")
class Sam(Part, Ascend):
    """Takes the gradient where the loss is worst nearby: sharpness-aware minimisation, two passes on one batch.

    e = rho g / (||g|| + eps), one norm over the whole model, g the raw data gradient.  Foret et al. 2021, eq. 2.
    """

    rho: float = 0.1
    eps: float = 1e-7
    ranges = {"rho": ">= 0", "eps": "> 0"}
    neutral = {"rho": 0.0}

    def ascend(self, grad: Callable[[], Vector], carry: Record, s: Step) -> tuple[Vector, Record]:
        g = grad()
        return self.rho * g / (g.norm() + self.eps), carry
