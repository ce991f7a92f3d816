from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, cross_entropy

from holdfast.errors import Refused
from holdfast.method import Part, part
from holdfast.slots import Loss, Step
from holdfast.vector import Vector


@part("align", cites="mendieta2022")
class Align(Part, Loss):
    """Keeps the last stage as smooth as its own thin version: their Lipschitz constants are drawn together.

    mu CE L/|L|, L = mean (top(x, S_thin(x)) - top(x, S(x)))^2, top the largest singular value of x S(x)^T/HW, x what
    goes into the last stage S; no gradient through x, S(x) and CE/|L|.  Mendieta et al. 2022 (FedAlign), as released.
    S_thin has the first `width` of all channels; those left out are zeros, which a GroupNorm counts in its statistics.
    """

    mu: float = 0.45
    width: float = 0.25
    ranges = {"mu": ">= 0", "width": "in (0, 1]"}
    neutral = {"mu": 0.0}
    jumps = True  # where the two nearly agree, CE/|L| blows rounding up

    def loss(self, s: Step) -> Tensor:
        if s.out.stage is None:
            raise Refused("'align' needs the model's last stage; give the model last_stage = ('layer4',) or drop it")
        x, full = (t.detach() for t in s.out.stage)
        thin = s.stage(s.layout.map(lambda _, t: self.thinned(t, 0), s.w), self.thinned(x, 1))
        apart = s.batch.mean((top(self.thinned(x, 1), thin) - top(x, full)).square())
        data = s.batch.mean(cross_entropy(s.out.logits, s.batch.y, reduction="none")).detach()
        size = apart.detach()
        return self.mu * torch.where(size > 0, data / torch.where(size > 0, size, 1), 0) * apart

    def thinned(self, t: Vector, axis: int) -> Tensor:
        channels = t.shape[axis]
        some = torch.floor(torch.as_tensor(self.width * channels, device=t.device) + 0.5).clamp(min=1)
        kept = torch.arange(channels, device=t.device) < some
        return torch.where(kept.view(-1, *[1] * (t.dim() - axis - 1)), t, 0)


def top(x: Tensor, y: Tensor, turns: int = 10) -> Tensor:
    """The largest singular value of x y^T/HW for every sample, by the released ten turns of the power iteration."""
    if x.dim() == 4:
        x = adaptive_avg_pool2d(x, (y.shape[2], y.shape[3])) if x.shape[2] > y.shape[2] else x
    x, y = x.flatten(2) if x.dim() > 2 else x[..., None], y.flatten(2) if y.dim() > 2 else y[..., None]
    m = x @ y.transpose(1, 2) / math.prod(x.shape[2:])
    v, length = torch.ones_like(m[..., :1]), torch.ones_like(m[:, :1, :1])
    for _ in range(turns):
        v = m @ (m.transpose(1, 2) @ v)
        length = v.square().sum(1, keepdim=True).clamp(min=1e-30).sqrt()
        v = v / length
    return length.sqrt().flatten()
