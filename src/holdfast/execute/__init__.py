"""How one client's three functions are mapped over a cohort. No file here knows any part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from holdfast.method import Method
from holdfast.round import Down, Up
from holdfast.task import Batch
from holdfast.vector import Record

Memory = dict[str, Record]  # stacked: one row a client
Options = Mapping[str, Mapping[str, Tensor]]
# Sample indices and live mask [..., B], the clients' keys [...] and the local step -> a batch on the device.
Feed = Callable[[Tensor, Tensor, Tensor, int], Batch]


class Cohort(NamedTuple):
    """The clients of a round in ascending id, and every batch that they will see."""

    ids: Tensor  # [K]
    keys: Tensor  # [K]
    index: Tensor  # [K, S, B] sample indices
    live: Tensor  # [K, S, B] bool; live rows of a batch come first
    cards: Record  # n [K], classes [K, C]
    memory: Memory

    @property
    def steps(self) -> list[int]:
        """Local steps of each client."""
        return self.live.any(-1).sum(-1).tolist()


class Executor(Protocol):
    def __call__(self, options: Options, down: Down, cohort: Cohort, feed: Feed) -> tuple[Up, Memory]: ...


def tensors(method: Method, device: torch.device | str = "cpu") -> Options:
    """A method's float options as 0-dim tensors, in float64 so that floor(r L) is exact."""
    return {
        name: {key: torch.tensor(value, dtype=torch.float64, device=device) for key, value in options.items()}
        for name, options in method.floats().items()
    }
