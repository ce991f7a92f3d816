from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Loss, Step


@part("uv", cites="son2024")
class Uv(Part, Loss):
    """FedUV: a hinge on the standard deviations of the classifier's outputs, and features apart by a Gaussian kernel.

    lam (1/D) sum_j max(0, 1/sqrt(D) - std_i P_ij) + mu mean_{i<j} exp(-||f_i - f_j||^2/median of those not zero).
    Son et al. 2024, as their code has it: unbiased deviations, features not normalised.  Fewer than two rows: 0.
    """

    mu: float = 0.5
    lam: float | Literal["classes/4"] = "classes/4"
    ranges = {"mu": ">= 0", "lam": ">= 0"}
    neutral = {"mu": 0.0, "lam": 0.0}
    jumps = True  # where two distances are equal, the median takes its gradient from either

    def loss(self, s: Step) -> Tensor:
        classes = s.out.logits.shape[1]
        lam = classes / 4 if isinstance(self.lam, str) else self.lam
        both = lam * self.deviation(s, classes) + self.mu * self.uniformity(s)
        return torch.where(s.batch.live.sum() > 1, both, 0)

    def deviation(self, s: Step, classes: int) -> Tensor:
        p, live = s.out.logits.softmax(1), s.batch.live[:, None]
        n = live.sum()
        centred = torch.where(live, p - torch.where(live, p, 0).sum(0) / n.clamp(min=1), 0)
        variance = centred.square().sum(0) / (n - 1).clamp(min=1)
        # A deviation of exactly 0 has no gradient; the root's own would be infinite.
        std = torch.where(variance > 0, torch.where(variance > 0, variance, 1).sqrt(), 0)
        return (classes**-0.5 - std).clamp(min=0).mean()

    def uniformity(self, s: Step) -> Tensor:
        f = s.out.hidden("uv").flatten(1)
        distance = (f[:, None] - f[None, :]).square().sum(2)
        both = (s.batch.live[:, None] & s.batch.live[None, :]).triu(1)
        apart = both & (distance > 0)
        ordered = torch.where(apart, distance, torch.inf).reshape(-1).sort().values
        middle = ((apart.sum() - 1) // 2).clamp(min=0)
        median = ordered.gather(0, middle.view(1)).squeeze(0)
        width = torch.where(apart.any(), median, 1)
        near = torch.exp(-distance / torch.where(width.isfinite(), width, 1))
        return torch.where(both, near, 0).sum() / both.sum().clamp(min=1) * apart.any()
