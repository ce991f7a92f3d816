from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from holdfast.method import Part, part
from holdfast.slots import Loss, Step


@part("lc", cites="zhang2022")
class Lc(Part, Loss):
    """Calibrates logits by how many samples of a class the client has: rare classes must win by a margin.

    CE(z_c - tau n_c^(-1/4)) - CE(z), so that the sum is the calibrated loss; a class that the client lacks leaves the
    softmax.  Zhang et al. 2022 (FedLC), eq. 6, with the full softmax, for the printed one is unbounded below.
    Evaluation is on raw logits.  tau = 0.1 in FedDecorr's code.  A label that the client is not said to have counts as
    one sample of it.
    """

    tau: float = 1.0
    ranges = {"tau": ">= 0"}
    neutral = {"tau": 0.0}

    def loss(self, s: Step) -> Tensor:
        z, n = s.out.logits, s.card["classes"]
        margin = (self.tau * n.clamp(min=1) ** -0.25).to(z.dtype)
        other = torch.arange(len(n), device=n.device) != s.batch.y[:, None]
        lacking = (n == 0) & other & (torch.as_tensor(self.tau, device=n.device) > 0)
        # Below every logit that a model gives, so that the softmax is exactly 0; minus infinity makes NaN gradients.
        calibrated = torch.where(lacking, torch.finfo(z.dtype).min / 2, z - margin)
        pair = (cross_entropy(logits, s.batch.y, reduction="none") for logits in (calibrated, z))
        shifted = next(pair) - next(pair)
        return torch.where(torch.as_tensor(self.tau, device=n.device) > 0, s.batch.mean(shifted), 0 * z.sum())
