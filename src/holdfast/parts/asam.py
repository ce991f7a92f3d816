from __future__ import annotations

from collections.abc import Callable

import torch

from holdfast.method import Part, part
from holdfast.slots import Ascend, Step
from holdfast.vector import Record, Vector


@part("asam", cites="kwon2021")
class Asam(Part, Ascend):
    """Adaptive SAM: the radius scales with each weight.

    e = rho T^2 g / (||T g|| + 1e-16), T = |w| + eta for tensors named 'weight', 1 for others.
    Kwon et al. 2021, eq. 6, as FedASAM runs it (Caldarola et al. 2022).
    """

    rho: float = 0.5
    eta: float = 0.01
    ranges = {"rho": ">= 0", "eta": ">= 0"}
    neutral = {"rho": 0.0}

    def ascend(self, grad: Callable[[], Vector], carry: Record, s: Step) -> tuple[Vector, Record]:
        g = grad()
        t = s.layout.map(lambda name, w: w.abs() + self.eta if "weight" in name else torch.ones_like(w), s.w)
        return self.rho * t * t * g / ((t * g).norm() + 1e-16), carry
