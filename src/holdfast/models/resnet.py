"""Residual networks for small images: ResNet-20 and its wide form of 56 layers.

Sizes at 3 input channels and ten classes: ResNet-20 272,474 with 1x1 convolutions as shortcuts and 269,722 with
shortcuts without parameters; WideResNet-56-2 3,412,394, WideResNet-56-4 13,628,234.
Deviation: the pooling is global where the code of FedLAW and FedAWA has a fixed 8 x 8 window, which is wrong for
64 x 64 and breaks below 32 x 32. GroupNorm has two groups, as in every GroupNorm ResNet-18 of that lineage; the papers
do not say, and FedEve's ResNet-20 has one.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import Refused
from holdfast.models.layers import choice_problems, count_problems, image_problems, norm_layer, norm_problems

WIDTHS = (16, 32, 64)
SHORTCUTS = ("conv", "zero")


def conv(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class Padded(nn.Module):
    """He et al.'s option A: every second pixel, and channels of zeros before and after the old ones."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.more, self.stride = (outputs - inputs) // 2, stride

    def forward(self, x: Tensor) -> Tensor:
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.more, self.more))


class Block(nn.Module):
    """conv - norm - ReLU - conv - norm, plus the shortcut, ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: str, groups: int, shortcut: str = "conv"):
        super().__init__()
        self.conv1 = conv(inputs, outputs, 3, stride)
        self.norm1 = norm_layer(norm, outputs, groups)
        self.conv2 = conv(outputs, outputs, 3, 1)
        self.norm2 = norm_layer(norm, outputs, groups)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            made = nn.Sequential(conv(inputs, outputs, 1, stride), norm_layer(norm, outputs, groups))
            self.shortcut = made if shortcut == "conv" else Padded(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm1(self.conv1(x)).relu()
        return (self.norm2(self.conv2(inner)) + self.shortcut(x)).relu()


class SmallResNet(nn.Module):
    """A stem, three stages of so many blocks, a global mean, the head; forward returns (logits, features)."""

    def __init__(
        self, shape: tuple[int, ...], classes: int, width: int, blocks: int, norm: str, groups: int, shortcut: str
    ):
        super().__init__()
        widths = [width * w for w in WIDTHS]
        self.conv = conv(shape[0], widths[0], 3, 1)
        self.norm = norm_layer(norm, widths[0], groups)
        made, inputs = [], widths[0]
        for stage, outputs in enumerate(widths):
            for place in range(blocks):
                stride = 2 if stage > 0 and place == 0 else 1
                made.append(Block(inputs, outputs, stride, norm, groups, shortcut))
                inputs = outputs
        self.blocks = nn.Sequential(*made)
        self.head = nn.Linear(inputs, classes)
        self.last_stage = tuple(f"blocks.{i}" for i in range(len(made) - blocks, len(made)))
        if shortcut == "zero":  # as the code with these shortcuts does it; the other keeps PyTorch's own
            for layer in self.modules():
                if isinstance(layer, nn.Conv2d | nn.Linear):
                    nn.init.kaiming_normal_(layer.weight)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.blocks(self.norm(self.conv(x)).relu()).mean((2, 3))
        return self.head(features), features


def resnet20(
    shape: tuple[int, ...], classes: int, *, norm: str = "gn", groups: int = 2, shortcut: str = "conv"
) -> nn.Module:
    """ResNet-20 for small images; shortcut='conv': FedLAW's, 'zero': FedDecorr's and FedEve's (Kaiming normal)."""
    problems = image_problems("resnet20", shape) + choice_problems("resnet20", "shortcut", shortcut, SHORTCUTS)
    problems += norm_problems("resnet20", norm, groups, WIDTHS[0], ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return SmallResNet(shape, classes, 1, 3, norm, groups, shortcut)


def wrn56(
    shape: tuple[int, ...], classes: int, *, width: int = 2, norm: str = "gn", groups: int = 2, shortcut: str = "conv"
) -> nn.Module:
    """FedLAW's WRN56_2: ResNet-56 with every width doubled."""
    problems = image_problems("wrn56", shape) + choice_problems("wrn56", "shortcut", shortcut, SHORTCUTS)
    problems += count_problems("width", width)
    if not problems:
        problems = norm_problems("wrn56", norm, groups, WIDTHS[0] * width, ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return SmallResNet(shape, classes, width, 9, norm, groups, shortcut)
