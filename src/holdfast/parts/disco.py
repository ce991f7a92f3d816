from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Round, Weigh


@part("disco", cites="ye2023")
class Disco(Part, Weigh):
    """Clients whose labels are far from uniform weigh less.

    a_k ~ relu(r_k - a d_k + b), r_k = n_k/sum n, d_k = KL(labels_k || uniform) over its sum in the round.
    Ye et al. 2023 (FedDisco), eq. 8.  metric: 'l1', 'l2', 'cosine' distances are taken as they are, as in the code.
    Where all a_k are zero: the weights without it, n_k unless a part weighs equally.  The server learns every client's
    class counts: C numbers that a client sends once and N x C that the server keeps, which the data sheet leaves out.
    """

    a: float = 0.5
    b: float = 0.1
    metric: Literal["kl", "l1", "l2", "cosine"] = "kl"
    ranges = {"a": ">= 0", "b": ">= 0"}
    neutral = {"a": 0.0, "b": 0.0}

    def weigh(self, r: Round) -> Tensor:
        n = torch.where(r.live, r.cards["n"], 0)
        share = n / n.sum().clamp(min=1e-12)
        weights = torch.where(r.live, share - self.a * self.distance(r) + self.b, 0).clamp(min=0)
        weights = weights.to(n.dtype)
        return torch.where((weights.sum() > 0) & torch.as_tensor(self.a + self.b > 0), weights, r.weights)

    def distance(self, r: Round) -> Tensor:
        counts = r.cards["classes"]
        p = counts / counts.sum(1, keepdim=True).clamp(min=1)
        flat = 1 / counts.shape[1]
        if self.metric == "l1":
            return (p - flat).abs().sum(1)
        if self.metric == "l2":
            return (p - flat).norm(dim=1)
        if self.metric == "cosine":
            return 1 - p.sum(1) * flat / (p.norm(dim=1) * flat**0.5).clamp(min=1e-12)
        d = torch.where(r.live, torch.xlogy(p, p / flat).sum(1), 0)
        return d / torch.where(d.sum() > 0, d.sum(), 1)
