"""MobileNetV2 for small images, as FedDecorr has it (FedGH's network): 2,296,922 parameters at ten classes.

Other than Sandler et al.'s: ReLU and not ReLU6, three strides fewer, and every block of stride 1 has a shortcut, with a
1x1 convolution where widths differ. BatchNorm by default, as there.
"""

from __future__ import annotations

from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.models.layers import image_problems, norm_layer, norm_problems

STEM, LAST = 32, 1280
# expansion, width, blocks, stride of the first
STAGES = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class Inverted(nn.Module):
    """conv1x1 to more channels, 3x3 in each channel alone, conv1x1 to the width, plus the shortcut if stride is 1."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int, norm: str, groups: int):
        super().__init__()
        wide = expansion * inputs
        self.conv1 = nn.Conv2d(inputs, wide, 1, bias=False)
        self.norm1 = norm_layer(norm, wide, groups)
        self.conv2 = nn.Conv2d(wide, wide, 3, stride, padding=1, groups=wide, bias=False)
        self.norm2 = norm_layer(norm, wide, groups)
        self.conv3 = nn.Conv2d(wide, outputs, 1, bias=False)
        self.norm3 = norm_layer(norm, outputs, groups)
        self.shortcut: nn.Module | None = nn.Identity() if stride == 1 else None
        if stride == 1 and inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), norm_layer(norm, outputs, groups))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm1(self.conv1(x)).relu()
        out = self.norm3(self.conv3(self.norm2(self.conv2(inner)).relu()))
        return out if self.shortcut is None else out + self.shortcut(x)


class MobileNetV2(nn.Module):
    def __init__(self, shape: tuple[int, ...], classes: int, norm: str, groups: int):
        super().__init__()
        self.conv1 = nn.Conv2d(shape[0], STEM, 3, padding=1, bias=False)
        self.norm1 = norm_layer(norm, STEM, groups)
        blocks, inputs = [], STEM
        for expansion, width, count, stride in STAGES:
            for place in range(count):
                blocks.append(Inverted(inputs, width, expansion, stride if place == 0 else 1, norm, groups))
                inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.conv2 = nn.Conv2d(inputs, LAST, 1, bias=False)
        self.norm2 = norm_layer(norm, LAST, groups)
        self.head = nn.Linear(LAST, classes)
        self.last_stage = tuple(f"blocks.{i}" for i in range(len(blocks) - 4, len(blocks)))  # from the last stride on

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.blocks(self.norm1(self.conv1(x)).relu())
        features = self.norm2(self.conv2(x)).relu().mean((2, 3))
        return self.head(features), features


def mobilenetv2(shape: tuple[int, ...], classes: int, *, norm: str = "bn", groups: int = 2) -> nn.Module:
    """FedDecorr's MobileNetV2 for small images, FedGH's network on CIFAR-100 and Tiny-ImageNet."""
    problems = image_problems("mobilenetv2", shape)
    problems += norm_problems("mobilenetv2", norm, groups, 8, ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return MobileNetV2(shape, classes, norm, groups)
