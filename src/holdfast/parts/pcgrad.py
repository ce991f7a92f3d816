from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast import conflict
from holdfast.method import Part, part
from holdfast.slots import Merge, Round


@part("pcgrad", cites="yu2020")
class PcGrad(Part, Merge):
    """Gradient surgery of multi-task learning, clients as tasks: conflicting updates are projected and summed.

    w <- w + sum_k g_k, g_k as in gh: the sum, not the mean, so it grows with the cohort.  Yu et al. 2020, alg. 1.
    form 'code': the released shuffle has no effect, so the order is fixed, and a vector also meets its own original.
    """

    form: Literal["paper", "code"] = "paper"
    counts = True
    jumps = True

    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        order = conflict.visits(r.key, r.ids)
        if self.form == "code":
            order = torch.arange(len(deltas), device=deltas.device).expand(len(deltas), -1)
        return (conflict.projected(deltas, order) @ deltas).sum(0)
