from __future__ import annotations

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Merge, Round


@part("krum", cites="blanchard2017")
class Krum(Part, Merge):
    """Keeps the updates that lie closest to their neighbours, and so leaves out up to f that do not belong.

    score_k = sum of ||u_k - u_j||^2 over the n - f - 2 nearest others (at least 1); the mean of the m lowest scores.
    Blanchard et al. 2017 (Krum; m > 1 is multi-Krum).  Over clients that trained, each counting once.
    """

    f: int = 1
    m: int = 1
    ranges = {"f": ">= 0", "m": ">= 1"}
    counts = True
    jumps = True

    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        gram = (deltas @ deltas.T).double()
        length = gram.diagonal()
        apart = (length[:, None] + length[None, :] - 2 * gram).clamp(min=0)
        both = r.live[:, None] & r.live[None, :] & ~torch.eye(len(deltas), dtype=torch.bool, device=deltas.device)
        nearest = torch.where(both, apart, torch.inf).sort(1).values
        rank = torch.arange(len(deltas), device=deltas.device)
        many = (r.live.sum() - self.f - 2).clamp(min=1)
        counted = (rank < many) & nearest.isfinite()  # a client alone has no neighbour
        score = torch.where(r.live, torch.where(counted, nearest, 0).sum(1), torch.inf)
        chosen = (score.argsort(stable=True).argsort() < self.m) & r.live
        return chosen.to(deltas.dtype) @ deltas / chosen.sum().clamp(min=1)
