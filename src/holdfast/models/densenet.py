"""DenseNet-121 for small images, as FedLAW and FedAWA have it: 6,956,298 parameters at ten classes.

Deviations: GroupNorm by default, where that code has BatchNorm (FedFFT says 'GN after the final dense block', which is
either the last norm or all; statistics that are not exchanged fit neither); and the last pooling is global where that
code has a fixed 4 x 4 window, which fits 32 x 32 images alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import Refused
from holdfast.models.layers import image_problems, norm_layer, norm_problems

GROWTH = 32
BLOCKS = (6, 12, 24, 16)
WINDOWS = ((2, 2, 0),) * 3


class Bottleneck(nn.Module):
    """norm - ReLU - conv1x1 - norm - ReLU - conv3x3; its output stands in front of what came in."""

    def __init__(self, inputs: int, norm: str, groups: int):
        super().__init__()
        self.norm1 = norm_layer(norm, inputs, groups)
        self.conv1 = nn.Conv2d(inputs, 4 * GROWTH, 1, bias=False)
        self.norm2 = norm_layer(norm, 4 * GROWTH, groups)
        self.conv2 = nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv1(self.norm1(x).relu())
        return torch.cat([self.conv2(self.norm2(inner).relu()), x], 1)


class Transition(nn.Module):
    """norm - ReLU - conv1x1 to half the channels - mean over 2 x 2 pixels."""

    def __init__(self, inputs: int, norm: str, groups: int):
        super().__init__()
        self.norm = norm_layer(norm, inputs, groups)
        self.conv = nn.Conv2d(inputs, inputs // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(self.conv(self.norm(x).relu()), 2)


class DenseNet(nn.Module):
    def __init__(self, shape: tuple[int, ...], classes: int, norm: str, groups: int):
        super().__init__()
        width = 2 * GROWTH
        self.conv = nn.Conv2d(shape[0], width, 3, padding=1, bias=False)
        stages: list[nn.Module] = []
        for place, count in enumerate(BLOCKS):
            stages.append(nn.Sequential(*(Bottleneck(width + i * GROWTH, norm, groups) for i in range(count))))
            width += count * GROWTH
            if place < len(BLOCKS) - 1:
                stages.append(Transition(width, norm, groups))
                width //= 2
        self.stages = nn.Sequential(*stages)
        self.norm = norm_layer(norm, width, groups)
        self.head = nn.Linear(width, classes)
        self.last_stage = (f"stages.{len(stages) - 1}",)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.norm(self.stages(self.conv(x))).relu().mean((2, 3))
        return self.head(features), features


def densenet121(shape: tuple[int, ...], classes: int, *, norm: str = "gn", groups: int = 2) -> nn.Module:
    """FedLAW's and FedAWA's DenseNet-121 for small images."""
    problems = image_problems("densenet121", shape, WINDOWS)
    problems += norm_problems("densenet121", norm, groups, GROWTH, ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return DenseNet(shape, classes, norm, groups)
