"""What several parts share: steps of those that learn the clients' weights, and how codes scale by clients' sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def adam_step(g: Tensor, m: Tensor, v: Tensor, t: Tensor | int) -> tuple[Tensor, Tensor, Tensor]:
    """The t-th step of Adam(0.5, 0.999) with its bias corrections, for a learning rate of 1; and its moments."""
    m, v = 0.5 * m + 0.5 * g, 0.999 * v + 0.001 * g.square()
    return (m / (1 - 0.5**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8), m, v


def descended(slope: Callable[[Tensor], Tensor], x: Tensor, rates: Sequence[float | Tensor]) -> list[Tensor]:
    """Where Adam stands after each of its steps from x, at these rates."""
    m, v, path = torch.zeros_like(x), torch.zeros_like(x), list[Tensor]()
    for t, rate in enumerate(rates):
        step, m, v = adam_step(slope(x), m, v, t + 1)
        x = (x - rate * step).to(x.dtype)
        path.append(x)
    return path


def swa_rates(lr: float | Tensor, epochs: int) -> list[float | Tensor]:
    """FedLAW's rates beside averaging: a cosine of 100 epochs to the sixth, then ten epochs' rise to .05."""
    fallen = [lr * (1 + math.cos(math.pi * min(e, 6) / 100)) / 2 for e in range(epochs)]
    rise = [(1 - math.cos(math.pi * min(max(e - 6, 0), 10) / 10)) / 2 for e in range(epochs)]
    return [0.05 * a + (1 - a) * rate for a, rate in zip(rise, fallen, strict=True)]


def scatter_slope(u: Tensor, share: Tensor) -> Tensor:
    """The gradient of sum_k l_k ||u_k - sum_j l_j u_j|| with respect to the weights l [K]."""
    gram = u @ u.T
    lean = gram @ share
    spread = (gram.diagonal() - 2 * lean + share @ lean).clamp(min=0).sqrt()
    pull = torch.where(spread > 0, share / torch.where(spread > 0, spread, 1), 0)
    return spread + pull.sum() * lean - gram @ pull


def relative_size(n: Tensor, mean: Tensor | float) -> Tensor:
    """n_i over the mean of all clients, by which some codes scale; 1 where no mean is given."""
    known = (torch.as_tensor(mean) > 0) & (n > 0)
    return torch.where(known, n / torch.where(known, mean, 1), 1).to(n.dtype)
