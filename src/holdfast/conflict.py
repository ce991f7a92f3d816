"""What updates have against each other, worked out on their Gram matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast import noise


def visits(key: Tensor, ids: Tensor) -> Tensor:
    """For every client the others in a random order [K, K - 1]; a client does not visit itself."""
    rank = noise.fold(key, ids[:, None], ids[None, :])
    own = torch.eye(len(ids), dtype=torch.bool, device=ids.device)
    return rank.masked_fill(own, 2**32).argsort(1)[:, :-1]


def projected(deltas: Tensor, order: Tensor, original: bool = False) -> Tensor:
    """Rows of coefficients [K, K]: g_k is that mix of the updates u_j after its visits.

    At each visit, if <g_k, u_j> < 0 (or <u_k, u_j> < 0 for `original`), g_k <- g_k - <g_k, u_j>/||u_j||^2 u_j.
    """
    gram = (deltas @ deltas.T).double()
    each = torch.arange(len(deltas), device=deltas.device)
    mix = torch.eye(len(deltas), dtype=gram.dtype, device=deltas.device)
    for j in order.T:
        dot, length = (mix * gram[j]).sum(1), gram[j, j]
        conflict = (gram[each, j] if original else dot) < 0
        out = torch.where(conflict & (length > 0), dot / torch.where(length > 0, length, 1), 0)
        mix = mix.index_put((each, j), mix[each, j] - out)
    return mix.to(deltas.dtype)
