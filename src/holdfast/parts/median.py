from __future__ import annotations

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Merge, Round


@part("median", cites="yin2018")
class Median(Part, Merge):
    """The coordinatewise median of the updates, which a minority of bad clients cannot move far.

    u_j = median_k u_kj, the mean of the two middle values of an even number.  Yin et al. 2018, def. 1.
    Over clients that trained, each counting once.
    """

    counts = True
    jumps = True

    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        ordered = torch.where(r.live[:, None], deltas, torch.inf).sort(0).values
        many = r.live.sum().clamp(min=1)
        middle = torch.stack(((many - 1) // 2, many // 2))
        return torch.where(r.live.any(), ordered[middle], 0).mean(0)
