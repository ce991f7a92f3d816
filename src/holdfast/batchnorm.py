"""What becomes of batch normalisation in a federation, under the name that `run.toml` keeps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

POLICIES = {
    "averaged": "a batch is normalised by the statistics of its live rows; every client starts from the server's "
    "running statistics, which evaluation uses, and the server averages those that come back with the clients' weights "
    "of the round (of counters it takes the largest)",
    "batch": "a batch is normalised by the statistics of its live rows, in evaluation by those of the rows evaluated "
    "together; none are kept or sent",
}


def policy(module: nn.Module) -> str:
    """'averaged' where a layer keeps running statistics, 'batch' where none does; empty without the layers."""
    from torch.nn.modules.batchnorm import _BatchNorm  # a report reads the names alone, and opens without torch

    kept = {layer.running_mean is not None for layer in module.modules() if isinstance(layer, _BatchNorm)}
    return "averaged" if True in kept else "batch" if kept else ""
