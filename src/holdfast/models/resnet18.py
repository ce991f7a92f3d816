"""ResNet-18 with the stems that the papers' code has: 11,181,642 parameters (7x7) or 11,173,962 (3x3) at ten classes.

On 32 x 32 and on 28 x 28 images the 7x7 stem leaves one pixel to the last stage, whose 3x3 kernels then have eight
taps of nine that nothing ever reaches; 64 x 64 images have none of these.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import Refused
from holdfast.models.layers import (
    choice_problems,
    count_problems,
    image_problems,
    norm_layer,
    norm_problems,
    projector,
)
from holdfast.models.resnet import Block, conv

WIDTHS = (64, 128, 256, 512)


class Stem(NamedTuple):
    kernel: int
    stride: int
    pooled: bool  # a max-pool 3x3 of stride 2 behind it
    first: int = 1  # stride of the first stage
    fan_out: bool = False  # torchvision's initialisation; the others keep PyTorch's own


STEMS = {
    "imagenet": Stem(7, 2, True, fan_out=True),  # torchvision: FedDyn, FedSMOO, FedLESAM, FedFFT
    "3x3": Stem(3, 1, False),  # FedDecorr, FedDisco, FedEve
    "awa": Stem(3, 1, True),  # FedLAW, FedAWA, FedLWS; their fixed 4 x 4 pooling fits 64 x 64 images alone
}
UV = Stem(3, 1, False, first=2)


class ResNet18(nn.Module):
    """A stem, four stages of two blocks, a global mean, perhaps a projector, the head."""

    def __init__(self, shape: tuple[int, ...], classes: int, stem: Stem, norm: str, groups: int, projected: int = 0):
        super().__init__()
        self.conv1 = conv(shape[0], WIDTHS[0], stem.kernel, stem.stride)
        self.norm1 = norm_layer(norm, WIDTHS[0], groups)
        self.pooled = stem.pooled
        stages, inputs = [], WIDTHS[0]
        for width, stride in zip(WIDTHS, (stem.first, 2, 2, 2), strict=True):
            first = Block(inputs, width, stride, norm, groups)
            stages.append(nn.Sequential(first, Block(width, width, 1, norm, groups)))
            inputs = width
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.projector = projector(inputs, projected, norm, groups) if projected else nn.Identity()
        self.head = nn.Linear(projected or inputs, classes)
        self.last_stage = ("layer4",)
        if stem.fan_out:
            for layer in self.modules():
                if isinstance(layer, nn.Conv2d):
                    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm1(self.conv1(x)).relu()
        if self.pooled:
            x = functional.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        features = self.projector(x.mean((2, 3)))
        return self.head(features), features


def resnet18(
    shape: tuple[int, ...], classes: int, *, stem: str = "imagenet", norm: str = "gn", groups: int = 2
) -> nn.Module:
    """ResNet-18; stem='imagenet': torchvision's, 7x7 and max-pool; '3x3': no pooling; 'awa': 3x3 and max-pool."""
    problems = image_problems("resnet18", shape) + choice_problems("resnet18", "stem", stem, tuple(STEMS))
    problems += norm_problems("resnet18", norm, groups, WIDTHS[0], ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return ResNet18(shape, classes, STEMS[stem], norm, groups)


def uv_resnet18(
    shape: tuple[int, ...], classes: int, *, projector: int = 512, norm: str = "bn", groups: int = 2
) -> nn.Module:
    """FedUV's and UniVarFL's: 3x3 stem, a first stage of stride 2, a projector whose output are the features."""
    problems = image_problems("uv_resnet18", shape) + count_problems("projector", projector)
    problems += norm_problems("uv_resnet18", norm, groups, WIDTHS[0], ("gn", "bn"))
    if not problems:
        problems = norm_problems("uv_resnet18's projector", norm, groups, projector, ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return ResNet18(shape, classes, UV, norm, groups, projector)
