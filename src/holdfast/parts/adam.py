from __future__ import annotations

from typing import Literal

import torch

from holdfast.method import Part, part
from holdfast.slots import Round, Start, Update, zeros
from holdfast.vector import Record, Vector


def floor(origin: Start) -> Vector:
    part = origin.part
    return torch.zeros_like(origin.w) + (part.tau**2 if part.v0 == "tau2" else 0)


@part("adam", cites="reddi2021")
class Adam(Part, Update):
    """Adam on the server.

    m <- beta1 m + (1 - beta1) u;  v <- beta2 v + (1 - beta2) u^2;  w <- w + lr m/(sqrt(v) + tau).
    Reddi et al. 2021 (FedAdam), alg. 2: no bias correction, v starts at tau^2.  `v0` and `bias_correction` give the
    forms of other codes.
    """

    lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: Literal["tau2", "zero"] = "tau2"
    bias_correction: bool = False
    ranges = {"lr": "> 0", "beta1": "in [0, 1)", "beta2": "in [0, 1)", "tau": "> 0"}
    state = {"m": zeros, "v": floor}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        m = self.beta1 * r.st["m"] + (1 - self.beta1) * delta
        v = self.beta2 * r.st["v"] + (1 - self.beta2) * delta.square()
        t = (r.round + 1).to(delta.dtype)
        rise, fall = (1 - self.beta1**t, 1 - self.beta2**t) if self.bias_correction else (1, 1)
        return self.lr * (m / rise) / ((v / fall).sqrt() + self.tau), {"m": m, "v": v}
