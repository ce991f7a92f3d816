from __future__ import annotations

import torch
from torch import Tensor

from holdfast import noise
from holdfast.method import Part, part
from holdfast.slots import Merge, Round


@part("gh", cites="zhang2023gh")
class Gh(Part, Merge):
    """Gradient harmonisation: takes out of each update what points against another client's.

    For k, for j != k in random order: if <g_k, u_j> < 0 then g_k <- g_k - <g_k, u_j>/||u_j||^2 u_j, u_j the original.
    Zhang, Sun, Chen 2023 (FedGH), alg. 1.  Worked out on the Gram matrix: g_k is a row of coefficients of the u_j.
    Two exactly opposite updates vanish, whatever their lengths.
    """

    jumps = True

    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        gram = (deltas @ deltas.T).double()
        each = torch.arange(len(deltas), device=deltas.device)
        rank = noise.fold(r.key, r.ids[:, None], r.ids[None, :])
        # A client does not visit itself: it stands last in its own order and is left out.
        visits = rank.masked_fill(each[:, None] == each[None, :], 2**32).argsort(1)[:, :-1]
        mix = torch.eye(len(deltas), dtype=gram.dtype, device=deltas.device)
        for j in visits.T:
            dot = (mix * gram[j]).sum(1)
            length = gram[j, j]
            out = torch.where((dot < 0) & (length > 0), dot / torch.where(length > 0, length, 1), 0)
            mix = mix.index_put((each, j), mix[each, j] - out)
        return mix.to(deltas.dtype) @ deltas
