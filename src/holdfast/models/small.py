"""Small models: logistic regression, a perceptron, a two-layer convolutional network.

As in every model here, forward returns (logits, features), the features being the input of the last linear layer,
and that layer is the last `nn.Linear` of the module.
"""

from __future__ import annotations

import math
from itertools import pairwise

from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.models.layers import NORMS, count_problems, image_problems, norm_layer, norm_problems, pool_to


class LogReg(nn.Module):
    """Logistic regression; its features are the flattened sample."""

    def __init__(self, shape: tuple[int, ...], classes: int):
        super().__init__()
        self.head = nn.Linear(math.prod(shape), classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = x.flatten(1)
        return self.head(features), features


class MLP(nn.Module):
    """`layers` hidden layers of `hidden` units with ReLU, then the head."""

    def __init__(self, shape: tuple[int, ...], classes: int, hidden: int, layers: int):
        super().__init__()
        widths = [math.prod(shape)] + [hidden] * layers
        blocks = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths)]
        self.body = nn.Sequential(*blocks)
        self.last_stage = (f"body.{layers - 1}",)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(x.flatten(1))
        return self.head(features), features


class CNN(nn.Module):
    """Two 3x3 convolutions, the second of stride 2, pooled to 4x4, 64 hidden units, the head; for any image size."""

    def __init__(self, shape: tuple[int, ...], classes: int, width: int, norm: str, groups: int):
        super().__init__()
        bias = norm == "none"  # a norm layer has its own
        self.conv1 = nn.Conv2d(shape[0], width, 3, padding=1, bias=bias)
        self.norm1 = norm_layer(norm, width, groups)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=bias)
        self.norm2 = norm_layer(norm, 2 * width, groups)
        self.last_stage = ("conv2", "norm2")
        self.hidden = nn.Linear(2 * width * 16, 64)
        self.head = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm1(self.conv1(x)).relu()
        x = self.norm2(self.conv2(x)).relu()
        features = self.hidden(pool_to(x, 4).flatten(1)).relu()
        return self.head(features), features


def logreg(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Logistic regression on the flattened sample."""
    return LogReg(shape, classes)


def mlp(shape: tuple[int, ...], classes: int, *, hidden: int = 64, layers: int = 2) -> nn.Module:
    """A perceptron: `layers` hidden layers of `hidden` units with ReLU, then the head."""
    problems = count_problems("hidden", hidden) + count_problems("layers", layers)
    if problems:
        raise Refused(*problems)
    return MLP(shape, classes, hidden, layers)


def cnn(shape: tuple[int, ...], classes: int, *, width: int = 16, norm: str = "gn", groups: int = 2) -> nn.Module:
    """Two 3x3 convolutions, pooled to 4x4, 64 hidden units, the head; for images of any size, ours."""
    problems = image_problems("cnn", shape) + count_problems("width", width)
    problems += norm_problems("cnn", norm, groups, width, NORMS)
    if problems:
        raise Refused(*problems)
    return CNN(shape, classes, width, norm, groups)
