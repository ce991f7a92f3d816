"""Two ways to differentiate one objective at one vector; they differ in speed and in what they can stand inside."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad_and_value

from holdfast.vector import Record, Vector, mapped

Objective = Callable[[Vector], tuple[Tensor, Record]]  # the loss, and the buffers afterwards
Differentiate = Callable[[Objective, Vector], tuple[Vector, tuple[Tensor, Record]]]


def autograd(objective: Objective, w: Vector) -> tuple[Vector, tuple[Tensor, Record]]:
    """On a flat leaf: faster for one client at a time."""
    leaf = w.detach().requires_grad_()
    with torch.enable_grad():
        loss, buffers = objective(leaf)
    (gradient,) = torch.autograd.grad(loss, leaf)
    return gradient, (loss.detach(), mapped(torch.Tensor.detach, buffers))


def functional(objective: Objective, w: Vector) -> tuple[Vector, tuple[Tensor, Record]]:
    """Stands under vmap and torch.compile."""
    return grad_and_value(objective, has_aux=True)(w)
