"""Layers that the models share, and what is checked of their options and samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from holdfast.data.named import nearest

NORMS = ("gn", "bn", "none")
Window = tuple[int, int, int]  # kernel, stride, padding


def norm_layer(norm: str, channels: int, groups: int, flat: bool = False) -> nn.Module:
    """GroupNorm, BatchNorm or nothing; checked by `norm_problems` before. `flat`: after a linear layer."""
    if norm == "gn":
        return nn.GroupNorm(groups, channels)
    if norm == "bn":
        return nn.BatchNorm1d(channels) if flat else nn.BatchNorm2d(channels)
    return nn.Identity()


def projector(inputs: int, width: int, norm: str, groups: int) -> nn.Sequential:
    """Two linear layers, each with norm and ReLU, before the head: that of FedUV's code."""
    layers: list[nn.Module] = []
    for size in (inputs, width):
        layers += [nn.Linear(size, width), norm_layer(norm, width, groups, flat=True), nn.ReLU()]
    return nn.Sequential(*layers)


def glorot(module: nn.Module, normal: bool = False) -> None:
    """Keras' initialisation of convolutions and linear layers: Glorot weights, zero biases.

    Its normal form is cut at two standard deviations and widened to keep the variance 2/(fan in + fan out).
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            if normal:
                fans = nn.init._calculate_fan_in_and_fan_out(layer.weight)
                std = math.sqrt(2 / sum(fans)) / 0.87962566103423978
                nn.init.trunc_normal_(layer.weight, std=std, a=-2 * std, b=2 * std)
            else:
                nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def norm_problems(model: str, norm: object, groups: object, width: object, allowed: tuple[str, ...]) -> list[str]:
    """What is wrong with these options; `width` is the number of channels that all others are multiples of."""
    if norm not in allowed:
        return [f"{model} has no norm {norm!r}: {nearest(str(norm), allowed)}"]
    problems = count_problems("groups", groups)
    if norm == "gn" and isinstance(groups, int) and isinstance(width, int) and groups > 0 < width and width % groups:
        divisors = ", ".join(str(d) for d in range(1, width + 1) if width % d == 0)
        problems.append(f"groups={groups} does not divide the {width} channels of {model}: take one of {divisors}")
    return problems


def count_problems(name: str, value: object, least: int = 1) -> list[str]:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return []
    return [f"{name}={value!r} is not a whole number {f'above {least - 1}' if least else 'from 0'}"]


def choice_problems(model: str, option: str, value: object, allowed: Sequence[object]) -> list[str]:
    return [] if value in allowed else [f"{model} has no {option} {value!r}: {nearest(str(value), map(str, allowed))}"]


def share_problems(name: str, value: object) -> list[str]:
    """Of the share of units that dropout leaves out."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
    return [] if good else [f"{name}={value!r} is not a number from 0 to below 1"]


def image_problems(model: str, shape: tuple[int, ...], windows: Sequence[Window] = ()) -> list[str]:
    """Of samples for a model of images; the windows that follow one another say how small an image may be."""
    if len(shape) != 3:
        return [
            f"{model} needs images (channels, height, width), the samples have shape {tuple(shape)}: "
            "give them a channel dimension (x[:, None]) or take mlp or logreg"
        ]
    if min(after(size, windows) for size in shape[1:]) < 1:
        least = next(size for size in range(1, 1000) if after(size, windows) > 0)
        return [
            f"{model} needs images of {least} x {least} pixels or more, these have {shape[1]} x {shape[2]}: "
            "take a model that pools over the whole image (resnet20, cnn) or larger images"
        ]
    return []


def code_problems(model: str, shape: tuple[int, ...], codes: tuple[int, ...], fields: int = 1) -> list[str]:
    """Of samples for a model of codes: one vocabulary for a row of them, or so many fields with a size each."""
    if not codes:
        return [f"{model} needs codes (whole numbers that name things), the samples are numbers of shape "
                f"{tuple(shape)}: take mlp, cnn or another model of numbers"]  # fmt: skip
    if any(count_problems("codes", size) for size in codes):
        return [f"codes={codes} are no numbers of codes: give whole numbers above 0"]
    if len(shape) != 1:
        return [f"{model} needs rows of codes, the samples have shape {tuple(shape)}"]
    if fields == 1 and len(codes) > 1:
        return [f"{model} reads one vocabulary, the samples have {len(codes)} fields of their own: take din"]
    if fields > 1 and (len(codes) < fields or len(codes) != shape[0]):
        return [f"{model} needs a size for each of its {fields} fields or more, and a field for each: the samples have "
                f"{len(codes)} sizes for {shape[0]} fields; take charlstm, textcnn or fasttext for text"]  # fmt: skip
    return []


def after(size: int, windows: Sequence[Window]) -> int:
    """What convolutions and poolings leave of a side of this length; 0 where one does not fit."""
    for kernel, stride, padding in windows:
        if size + 2 * padding < kernel:
            return 0
        size = (size + 2 * padding - kernel) // stride + 1
    return size


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
