from __future__ import annotations

import torch

from holdfast.method import Part, part
from holdfast.slots import Round, Update
from holdfast.vector import Layout, Record, Vector


@part("lws", cites="shi2025lws")
class Lws(Part, Update):
    """Shrinks the new model layer by layer, the more the clients' updates of a layer scatter.

    gamma_l = ||w_l||/(||w_l|| + tau_l ||wbar_l - w_l||), tau_l = clip(beta v_l, low, high),
    v_l = mean_k ||u_kl - ubar_l||.  Shi et al. 2025 (FedLWS), eq. 8.  A layer is all tensors up to and with a bias.
    gamma = 1 where w_l = 0, which would stay there for ever otherwise; buffers are left alone.
    """

    beta: float = 0.03
    low: float = 0.01
    high: float = 0.2
    ranges = {"beta": ">= 0", "low": ">= 0", "high": ">= 0"}
    neutral = {"beta": 0.0, "low": 0.0}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        around = torch.where(r.live[:, None], r.deltas - r.mean, 0)
        pieces = [self.shrink(r.w[a:b], delta[a:b], around[:, a:b], r) for a, b in layers(r.layout)]
        rest = torch.zeros_like(delta[r.layout.size :])
        return delta + r.layout.shared(torch.cat([*pieces, rest])), {}

    def shrink(self, w: Vector, delta: Vector, around: Vector, r: Round) -> Vector:
        """(gamma - 1) wbar_l."""
        spread = around.norm(dim=1).sum() / r.cohort.clamp(min=1)
        tau = (self.beta * spread).clamp(min=self.low).clamp(max=self.high).to(delta.dtype)
        length, moved = w.norm(), tau * delta.norm()
        gamma = torch.where(length > 0, length / torch.where(length > 0, length + moved, 1), 1)
        return (gamma - 1) * (w + delta)


def layers(layout: Layout) -> list[tuple[int, int]]:
    """Beginnings and ends in the vector."""
    found, begin, end = list[tuple[int, int]](), 0, 0
    for name, size in zip(layout.names, layout.sizes, strict=True):
        end += size
        if "bias" in name:
            found.append((begin, end))
            begin = end
    return found if begin == end else [*found, (begin, end)]
