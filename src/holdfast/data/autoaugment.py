"""AutoAugment's CIFAR-10 policy (Cubuk et al. 2019, table 7) in the form of the port that FedDecorr and FedGH use.

Of 25 sub-policies one is drawn; it has two operations, each with a probability and a level. The port cuts the range of
an operation by 11 points and draws uniformly between point `level` and the next. It does not draw signs, so level 9 is
always the positive end. Where its names or its centre are not the paper's, the port holds, for it made the numbers:

* Its ShearY moves pixels along their row, which the paper calls ShearX; its positive angles turn clockwise, and its
  positive translations move the picture to the left and up.
* Its centre is half a side plus a half, in pixels counted from 0: 16.5 where the middle of 32 pixels is 15.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.data import pixels
from holdfast.data.steps import below, here, unit
from holdfast.data.warp import warp

POLICY = """
Invert .1 7 | Contrast .2 6
Rotate .7 2 | TranslateX .3 9
Sharpness .8 1 | Sharpness .9 3
ShearY .5 8 | TranslateY .7 9
AutoContrast .5 8 | Equalize .9 2
ShearY .2 7 | Posterize .3 7
Color .4 3 | Brightness .6 7
Sharpness .3 9 | Brightness .7 9
Equalize .6 5 | Equalize .5 1
Contrast .6 7 | Sharpness .6 5
Color .7 7 | TranslateX .5 8
Equalize .3 7 | AutoContrast .4 8
TranslateY .4 3 | Sharpness .2 6
Brightness .9 6 | Color .2 8
Solarize .5 2 | Invert .0 3
Equalize .2 0 | AutoContrast .6 0
Equalize .2 8 | Equalize .6 4
Color .9 9 | Equalize .6 6
AutoContrast .8 4 | Solarize .2 8
Brightness .1 3 | Color .7 0
Solarize .4 5 | AutoContrast .9 3
TranslateY .9 9 | TranslateY .7 9
AutoContrast .9 2 | Solarize .8 3
Equalize .8 8 | Invert .1 3
TranslateY .7 9 | AutoContrast .9 1
"""
ENHANCE, SHIFT = (0.1, 1.9), (-150 / 331, 150 / 331)
RANGES = {  # of the value that the operation takes; the order numbers the operations, tables first, then maps
    "Invert": (0.0, 0.0), "AutoContrast": (0.0, 0.0), "Equalize": (0.0, 0.0), "Solarize": (0.0, 256.0),
    "Posterize": (4.0, 8.0), "Contrast": ENHANCE, "Brightness": ENHANCE, "Color": ENHANCE, "Sharpness": ENHANCE,
    "ShearY": (-0.3, 0.3), "TranslateX": SHIFT, "TranslateY": SHIFT, "Rotate": (-30.0, 30.0),
}  # fmt: skip
CODES = {name: code for code, name in enumerate(RANGES)}
NOTHING = len(CODES)
COLOR, SHARPNESS, SHEAR = CODES["Color"], CODES["Sharpness"], CODES["ShearY"]
POINTS = 11


def policy() -> Tensor:
    """[25, 2, 4]: the code, the probability and the two ends of the value of every operation."""
    rows = []
    for line in POLICY.strip().splitlines():
        for name, p, level in (operation.split() for operation in line.split("|")):
            ends = np.linspace(*RANGES[name], POINTS)[int(level) : int(level) + 2]
            rows.append([CODES[name], float(p), *ends])
    return torch.tensor(rows, dtype=torch.float64).view(-1, 2, 4)


@dataclass(frozen=True)
class AutoAugment:
    """One of the 25 sub-policies of AutoAugment's CIFAR-10 policy on each image of bytes, in FedDecorr's form."""

    draws: ClassVar[int] = 5  # the sub-policy, whether each operation is done, both values
    table: Tensor = field(default_factory=policy, repr=False, compare=False)

    def problems(self) -> list[str]:
        return []

    def on(self, device: torch.device | str) -> AutoAugment:
        return replace(self, table=self.table.to(device))

    def unfit(self, shape: tuple[int, ...], dtype: torch.dtype) -> list[str]:
        if dtype == torch.uint8 and shape[-3] in (1, 3) and min(shape[-2:]) > 1:
            return []
        return [
            f"autoaugment works on bytes (uint8) with 1 or 3 channels, not {dtype} of shape {tuple(shape[-3:])}; "
            "write it before 'normalise', or leave it out"
        ]

    def __call__(self, x: Tensor, bits: Tensor) -> Tensor:
        chosen = self.table.to(x.device)[below(bits[:, 0], len(self.table))]  # [N, 2, 4]
        code, p, low, high = chosen.unbind(2)
        done = unit(bits[:, 1:3]) < p
        code = torch.where(done, code.long(), NOTHING)
        value = low + (high - low) * unit(bits[:, 3:])
        for slot in (0, 1):
            x = operated(x, code[:, slot], value[:, slot])
        return x


def operated(x: Tensor, code: Tensor, value: Tensor) -> Tensor:
    """Each image through the operation of its code, or none."""
    x = among(code < COLOR, toned, x, code, value)
    x = among(code == COLOR, pixels.color, x, value)
    x = among(code == SHARPNESS, pixels.sharpness, x, value)
    return among((code >= SHEAR) & (code < NOTHING), moved, x, code, value)


def among(rows: Tensor, change: Callable[..., Tensor], x: Tensor, *given: Tensor) -> Tensor:
    """`change` applied to these images. A GPU changes all and keeps these: to count them, it would have to wait."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return torch.where(here(rows, x), change(x, *given), x)
    chosen = rows.nonzero().squeeze(1)
    if not len(chosen):
        return x
    return x.index_copy(0, chosen, change(x[chosen], *(g[chosen] for g in given)))


def toned(x: Tensor, code: Tensor, value: Tensor) -> Tensor:
    """The operations that replace byte by byte, each image by its own table."""
    tables = {
        "Invert": pixels.LEVELS - 1 - pixels.levels(x),
        "AutoContrast": pixels.autocontrast(x),
        "Equalize": pixels.equalize(x),
        "Solarize": pixels.solarize(x, value),
        "Posterize": pixels.posterize(x, value),
        "Contrast": pixels.contrast(x, value),
        "Brightness": pixels.brightness(x, value),
    }
    table = pixels.levels(x).expand(*x.shape[:2], -1)
    for name, found in tables.items():
        table = torch.where((code == CODES[name]).view(-1, 1, 1), found, table)
    return pixels.looked_up(x, table.to(torch.uint8))


def moved(x: Tensor, code: Tensor, value: Tensor) -> Tensor:
    """The operations that move pixels."""
    return warp(x, matrices(code, value, *x.shape[-2:]))


def matrices(code: Tensor, value: Tensor, height: int, width: int) -> Tensor:
    """[N, 2, 3] from places in the result to places in the image, about the port's centre."""
    zero = torch.zeros_like(value)

    def only(name: str, found: Tensor, otherwise: Tensor) -> Tensor:
        return torch.where(code == CODES[name], found, otherwise)

    angle = value * (torch.pi / 180)
    cos, sin = only("Rotate", angle.cos(), zero + 1), only("Rotate", angle.sin(), zero)
    shear = only("ShearY", value, sin)
    down, along = only("TranslateY", height * value, zero), only("TranslateX", width * value, zero)
    middle, centre = height / 2 + 0.5, width / 2 + 0.5
    rows = torch.stack([cos, -sin, middle - cos * middle + sin * centre + down], 1)
    columns = torch.stack([shear, cos, centre - shear * middle - cos * centre + along], 1)
    return torch.stack([rows, columns], 1)
