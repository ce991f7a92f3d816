from __future__ import annotations

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Merge, Round


@part("trimmed", cites="yin2018")
class Trimmed(Part, Merge):
    """The coordinatewise mean of the updates without the largest and the smallest share beta.

    u_j = the mean of u_1j .. u_mj without the floor(beta m) largest and the floor(beta m) smallest.  Yin et al. 2018,
    def. 2.  Over clients that trained, each counting once.
    """

    beta: float = 0.1
    ranges = {"beta": "in [0, 0.5)"}
    counts = True
    jumps = True

    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        ordered = torch.where(r.live[:, None], deltas, torch.inf).sort(0).values
        many = r.live.sum()
        cut = torch.floor(torch.as_tensor(self.beta, dtype=torch.float64, device=deltas.device) * many)
        rank = torch.arange(len(deltas), device=deltas.device)
        kept = (rank >= cut) & (rank < many - cut)
        return torch.where(kept[:, None], ordered, 0).sum(0) / kept.sum().clamp(min=1)
