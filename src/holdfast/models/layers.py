"""Layers that the models share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from holdfast.data.named import nearest

NORMS = ("gn", "bn", "none")


def norm_layer(norm: str, channels: int, groups: int) -> nn.Module:
    """GroupNorm, BatchNorm or nothing; checked by `norm_problems` before."""
    if norm == "gn":
        return nn.GroupNorm(groups, channels)
    return nn.BatchNorm2d(channels) if norm == "bn" else nn.Identity()


def norm_problems(model: str, norm: object, groups: object, width: object, allowed: tuple[str, ...]) -> list[str]:
    """What is wrong with these options; `width` is the number of channels that all others are multiples of."""
    if norm not in allowed:
        return [f"{model} has no norm {norm!r}: {nearest(str(norm), allowed)}"]
    problems = count_problems("groups", groups)
    if norm == "gn" and isinstance(groups, int) and isinstance(width, int) and groups > 0 < width and width % groups:
        divisors = ", ".join(str(d) for d in range(1, width + 1) if width % d == 0)
        problems.append(f"groups={groups} does not divide the {width} channels of {model}: take one of {divisors}")
    return problems


def count_problems(name: str, value: object) -> list[str]:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return []
    return [f"{name}={value!r} is not a whole number above 0"]


def image_problems(model: str, shape: tuple[int, ...]) -> list[str]:
    if len(shape) == 3:
        return []
    return [
        f"{model} needs images (channels, height, width), the samples have shape {tuple(shape)}: "
        "give them a channel dimension (x[:, None]) or take mlp or logreg"
    ]


def pool_to(x: Tensor, size: int) -> Tensor:
    """Adaptive average pooling to size x size, [B, C, H, W] -> [B, C, size, size].

    F.adaptive_avg_pool2d gives the same, but its backward pass on a GPU adds in no fixed order.
    """
    for dim in (2, 3):
        length = x.shape[dim]
        if length != size:  # window i is [floor(i L / size), ceil((i + 1) L / size))
            windows = [(i * length // size, -(-(i + 1) * length // size)) for i in range(size)]
            x = torch.stack([x.narrow(dim, start, end - start).mean(dim) for start, end in windows], dim)
    return x
