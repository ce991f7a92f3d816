"""ResNet-20 for small images, with 1x1 convolutions as shortcuts: 272,474 parameters at 3 x 32 x 32 and ten classes.

The definition of the FedLAW family: projection shortcuts (He et al.'s option B), PyTorch's default initialisation.
Deviation: the pooling is global where FedLAW's code has a fixed 8 x 8 window, which is wrong for 64 x 64 and breaks
below 32 x 32. GroupNorm has two groups, as in every GroupNorm network of that lineage; the papers do not say.
"""

from __future__ import annotations

from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.models.layers import image_problems, norm_layer, norm_problems

WIDTHS = (16, 32, 64)
BLOCKS = 3


def _conv(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class Block(nn.Module):
    """conv - norm - ReLU - conv - norm, plus the shortcut, ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: str, groups: int):
        super().__init__()
        self.conv1 = _conv(inputs, outputs, 3, stride)
        self.norm1 = norm_layer(norm, outputs, groups)
        self.conv2 = _conv(outputs, outputs, 3, 1)
        self.norm2 = norm_layer(norm, outputs, groups)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(_conv(inputs, outputs, 1, stride), norm_layer(norm, outputs, groups))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm1(self.conv1(x)).relu()
        return (self.norm2(self.conv2(inner)) + self.shortcut(x)).relu()


class ResNet20(nn.Module):
    """A stem, three stages of three blocks, a global mean, the head; forward returns (logits, features)."""

    def __init__(self, shape: tuple[int, ...], classes: int, norm: str, groups: int):
        super().__init__()
        self.conv = _conv(shape[0], WIDTHS[0], 3, 1)
        self.norm = norm_layer(norm, WIDTHS[0], groups)
        blocks, inputs = [], WIDTHS[0]
        for stage, width in enumerate(WIDTHS):
            for place in range(BLOCKS):
                blocks.append(Block(inputs, width, 2 if stage > 0 and place == 0 else 1, norm, groups))
                inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)
        self.last_stage = tuple(f"blocks.{i}" for i in range(len(blocks) - BLOCKS, len(blocks)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.blocks(self.norm(self.conv(x)).relu()).mean((2, 3))
        return self.head(features), features


def resnet20(shape: tuple[int, ...], classes: int, *, norm: str = "gn", groups: int = 2) -> nn.Module:
    problems = image_problems("resnet20", shape)
    problems += norm_problems("resnet20", norm, groups, WIDTHS[0], ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return ResNet20(shape, classes, norm, groups)
