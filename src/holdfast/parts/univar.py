from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Loss, Step


@part("univar", cites="gupta2025")
class UniVar(Part, Loss):
    """Keeps a client's classifier varied and its features spread over the sphere, as IID training would.

    lam (1/D) sum_j max(0, c - Var_i P_ij) + mu (1/n^2) sum_{i != j} 1/(1 - cos(f_i, f_j) + eps).
    Gupta et al. 2025 (UniVarFL); P softmax, f input of the last layer, c the variance of the D x D identity's columns.
    estimator: the paper names none.  self_pairs adds the printed formula's constant 1/(n eps).  eps is not given there.
    """

    mu: float = 0.5
    lam: float | Literal["classes/4"] = "classes/4"
    estimator: Literal["biased", "unbiased"] = "biased"
    self_pairs: bool = False
    eps: float = 0.01
    ranges = {"mu": ">= 0", "lam": ">= 0", "eps": "> 0"}
    neutral = {"mu": 0.0, "lam": 0.0}

    def loss(self, s: Step) -> Tensor:
        classes = s.out.logits.shape[1]
        lam = classes / 4 if isinstance(self.lam, str) else self.lam
        return lam * self.variance(s, classes) + self.mu * self.energy(s)

    def variance(self, s: Step, classes: int) -> Tensor:
        p, live = s.out.logits.softmax(1), s.batch.live[:, None]
        n = live.sum()
        less = 0 if self.estimator == "biased" else 1
        centred = torch.where(live, p - torch.where(live, p, 0).sum(0) / n.clamp(min=1), 0)
        spread = centred.square().sum(0) / (n - less).clamp(min=1)
        full = (classes - 1) / classes**2 if self.estimator == "biased" else 1 / classes
        return torch.where(n > 1, (full - spread).clamp(min=0).mean(), 0)  # one row has no variance

    def energy(self, s: Step) -> Tensor:
        f = s.out.hidden("univar").flatten(1)
        z = f / f.norm(dim=1, keepdim=True).clamp(min=1e-12)
        n = s.batch.live.sum().clamp(min=1).to(f.dtype)
        pair = 1 / ((1 - z @ z.T).clamp(min=0) + self.eps)
        other = s.batch.pairs(pair) * ((n - 1) / n)  # a mean over n (n - 1) pairs; the paper divides by n^2
        return other + (1 / (n * self.eps) if self.self_pairs else 0)
