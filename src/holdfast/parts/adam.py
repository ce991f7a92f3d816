from __future__ import annotations

from typing import Literal

import torch

from holdfast.method import Method, Part, part
from holdfast.slots import Round, Start, Update, zeros
from holdfast.vector import Record, Vector


def floor(origin: Start) -> Vector:
    part = origin.part
    return torch.zeros_like(origin.w) + (part.tau**2 if part.v0 == "tau2" else 0)


@part("adam", cites="reddi2021")
class Adam(Part, Update):
    """An adaptive optimiser on the server: FedAdam, FedYogi, FedAdagrad.

    m <- beta1 m + (1 - beta1) u;  w <- w + lr m/(sqrt(v) + tau);  v by rule: adam beta2 v + (1 - beta2) u^2,
    yogi v - (1 - beta2) u^2 sign(v - u^2), adagrad v + u^2.  Reddi et al. 2021, alg. 2: no bias correction, v starts at
    tau^2; fedadagrad has beta1 = 0.  `v0` and `bias_correction` give the forms of other codes.
    """

    lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: Literal["tau2", "zero"] = "tau2"
    bias_correction: bool = False
    rule: Literal["adam", "yogi", "adagrad"] = "adam"
    ranges = {"lr": "> 0", "beta1": "in [0, 1)", "beta2": "in [0, 1)", "tau": "> 0"}
    state = {"m": zeros, "v": floor}

    def refuses(self, method: Method) -> str | None:
        if self.rule == "adagrad" and self.bias_correction:
            return "adam(rule='adagrad') keeps a plain sum, which has no bias to correct; drop bias_correction"
        if self.bias_correction and self.v0 == "tau2":
            return ("adam(bias_correction=True) takes v to start at 0, and v0='tau2' starts it at tau^2, which the "
                    "correction would blow up; add v0='zero', as codes that correct have it")  # fmt: skip
        return None

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        v, square = r.st["v"], delta.square()
        m = self.beta1 * r.st["m"] + (1 - self.beta1) * delta
        if self.rule == "adam":
            v = self.beta2 * v + (1 - self.beta2) * square
        elif self.rule == "yogi":
            v = v - (1 - self.beta2) * square * torch.sign(v - square)
        else:
            v = v + square
        t = (r.round + 1).to(delta.dtype)
        rise, fall = (1 - self.beta1**t, 1 - self.beta2**t) if self.bias_correction else (1, 1)
        return self.lr * (m / rise) / ((v / fall).sqrt() + self.tau), {"m": m, "v": v}
