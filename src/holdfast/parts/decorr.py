from __future__ import annotations

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Loss, Step


@part("decorr", cites="shi2023")
class Decorr(Part, Loss):
    """Decorrelates feature columns within a batch, so that features do not collapse onto a few directions.

    beta mean_{a != b} K_ab^2 / n, K = X^T X of the standardised features X (n rows).  Shi et al. 2023 (FedDecorr), in
    the scale of their code, which is about n times that of the printed loss.  0 for a single row.
    """

    beta: float = 0.1
    ranges = {"beta": ">= 0"}
    neutral = {"beta": 0.0}

    def loss(self, s: Step) -> Tensor:
        f, live = s.out.hidden("decorr").flatten(1), s.batch.live[:, None]
        n = live.sum()
        centred = torch.where(live, f - torch.where(live, f, 0).sum(0) / n.clamp(min=1), 0)
        variance = centred.square().sum(0) / (n - 1).clamp(min=1)
        x = centred * torch.rsqrt(variance + 1e-8)
        k = x.T @ x
        off = ~torch.eye(len(k), dtype=torch.bool, device=k.device)
        mean = torch.where(off, k.square(), 0).sum() / off.sum().clamp(min=1)
        return self.beta * torch.where(n > 1, mean / n.clamp(min=1), 0)
