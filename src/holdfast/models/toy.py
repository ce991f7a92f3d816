"""The networks of the laws: a few hundred parameters on 1 x 6 x 6 samples."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES = 3


def network(kind: str) -> nn.Module:
    """tanh and mean pooling are smooth: rounding cannot choose a branch, so executors may be compared tightly."""
    if kind == "resnet":
        return small_resnet()
    grouped = kind == "group"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4) if grouped else nn.BatchNorm2d(4), nn.Tanh(),
            nn.AvgPool2d(2), nn.Flatten(), nn.Identity() if grouped else nn.Dropout(0.3),
            nn.Linear(36, 10), nn.Tanh(), nn.Linear(10, CLASSES),
        )  # fmt: skip
    object.__setattr__(net, "last_stage", ("0", "1", "2"))
    return net


class Block(nn.Module):
    """conv - norm - ReLU - conv - norm, plus what came in, ReLU."""

    def __init__(self, width: int):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = (nn.GroupNorm(2, width) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))).relu()


def small_resnet() -> nn.Module:
    """A stem, two blocks, a mean, a head."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.GroupNorm(2, 4), nn.ReLU())
        net = nn.Sequential(stem, Block(4), Block(4), nn.AvgPool2d(3), nn.Flatten(), nn.Linear(16, CLASSES))
    object.__setattr__(net, "last_stage", ("2",))
    return net
