"""The geometric steps of augmentation: crop, flip, rotate, cutout, each in the exact form of the code that has it.

A step is a pure function of images [N, C, H, W] and 32 random bits for each of its draws [N, draws]. What becomes of
an image depends on its own pixels and bits alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from holdfast.data.named import nearest

WHOLE = 1 << 32  # random numbers are 32 bits in an int64


def below(bits: Tensor, count: int) -> Tensor:
    """A whole number from 0 to below `count`, each as likely as the next (to 2^-32)."""
    return (bits * count) >> 32


def unit(bits: Tensor) -> Tensor:
    """A float64 in [0, 1)."""
    return bits.to(torch.float64) * (1 / WHOLE)


def chance(bits: Tensor, p: float) -> Tensor:
    """True with probability p."""
    return bits < round(p * WHOLE)


def here(rows: Tensor, x: Tensor) -> Tensor:
    """[N] as [N, 1, 1, 1], to choose whole images."""
    return rows.view(-1, *[1] * (x.dim() - 1))


def picked(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The pixel at (rows [N, H, W], columns [N, H, W]) of each image, all of which lie in it."""
    w = x.shape[3]
    index = (rows * w + columns).flatten(1)[:, None].expand(-1, x.shape[1], -1)
    return x.flatten(2).gather(2, index).view(x.shape)


@dataclass(frozen=True)
class Crop:
    """A window of the image's own size, anywhere in the image padded by `pad` on each side; with probability p.

    Without it the image stays (FL-Simulator has p = 0.5, torchvision's RandomCrop p = 1). The border is `fill`, or with
    border='reflect' mirrored without repeating the edge (MOON on CIFAR-10).
    """

    draws: ClassVar[int] = 3
    pad: int
    p: float = 1.0
    fill: float = 0
    border: str = "constant"

    def problems(self) -> list[str]:
        found = whole("crop", "pad", self.pad) + probability("crop", self.p)
        if isinstance(self.fill, bool) or not isinstance(self.fill, (int, float)) or not math.isfinite(self.fill):
            found.append(f"crop: fill={self.fill!r} is not a finite number")
        if self.border not in ("constant", "reflect"):
            found.append(f"crop has no border {self.border!r}: {nearest(str(self.border), ('constant', 'reflect'))}")
        return found

    def unfit(self, shape: tuple[int, ...], dtype: torch.dtype) -> list[str]:
        found, side = [], min(shape[-2:])
        if self.border == "reflect" and self.pad >= side:
            found.append(
                f"crop(pad={self.pad}, border='reflect') needs images larger than {self.pad}; these have {side}"
            )
        if dtype == torch.uint8 and not (0 <= self.fill <= 255 and float(self.fill).is_integer()):
            found.append(f"crop: fill={self.fill!r} is no value of a byte, 0 to 255; write the crop after 'normalise'")
        return found

    def __call__(self, x: Tensor, bits: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        on = chance(bits[:, :1], self.p)
        offset = torch.where(on, below(bits[:, 1:], 2 * self.pad + 1) - self.pad, 0)
        rows = torch.arange(h, device=x.device) + offset[:, :1]
        columns = torch.arange(w, device=x.device) + offset[:, 1:]
        if self.border == "reflect":
            return picked(x, mirrored(rows, h)[:, :, None], mirrored(columns, w)[:, None, :])
        inside = ((rows >= 0) & (rows < h))[:, :, None] & ((columns >= 0) & (columns < w))[:, None, :]
        moved = picked(x, rows.clamp(0, h - 1)[:, :, None], columns.clamp(0, w - 1)[:, None, :])
        return moved.masked_fill(~inside[:, None], self.fill)


@dataclass(frozen=True)
class Flip:
    """Left and right exchanged, with probability p."""

    draws: ClassVar[int] = 1
    p: float = 0.5

    def problems(self) -> list[str]:
        return probability("flip", self.p)

    def unfit(self, shape: tuple[int, ...], dtype: torch.dtype) -> list[str]:
        return []

    def __call__(self, x: Tensor, bits: Tensor) -> Tensor:
        return torch.where(here(chance(bits[:, 0], self.p), x), x.flip(-1), x)


@dataclass(frozen=True)
class Rotate:
    """By an angle uniform in +-degrees about the centre, nearest pixel, ground 0.

    torchvision's RandomRotation on a Pillow image, to the bit: Pillow goes through the image in steps of 2^-16 pixel.
    """

    draws: ClassVar[int] = 1
    degrees: float

    def problems(self) -> list[str]:
        value = self.degrees
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 180:
            return [f"rotate: degrees={value!r} is not a number above 0 and up to 180"]
        return []

    def unfit(self, shape: tuple[int, ...], dtype: torch.dtype) -> list[str]:
        return []

    def __call__(self, x: Tensor, bits: Tensor) -> Tensor:
        return turned(x, (2 * unit(bits[:, 0]) - 1) * self.degrees)


@dataclass(frozen=True)
class Cutout:
    """A square of zeros whose centre is any pixel; what lies outside the image is lost (FedSOL: size 16)."""

    draws: ClassVar[int] = 2
    size: int

    def problems(self) -> list[str]:
        return whole("cutout", "size", self.size)

    def unfit(self, shape: tuple[int, ...], dtype: torch.dtype) -> list[str]:
        return []

    def __call__(self, x: Tensor, bits: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        half = self.size // 2  # an odd size is one smaller, as in the original
        away = [torch.arange(n, device=x.device) - below(bits[:, i : i + 1], n) for i, n in ((0, h), (1, w))]
        rows, columns = ((d >= -half) & (d < half) for d in away)
        return x.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0)


def mirrored(place: Tensor, length: int) -> Tensor:
    """Places less than a length outside, thrown back at the first and last pixel."""
    place = place.abs()
    return torch.where(place < length, place, 2 * (length - 1) - place)


def turned(x: Tensor, degrees: Tensor) -> Tensor:
    """Image.rotate(degrees) of Pillow: a map of pixel centres in 16.16 fixed point, rounded half away from zero."""
    h, w = x.shape[-2:]
    angle = -degrees * (math.pi / 180)
    cos, sin = angle.cos(), angle.sin()
    to_x = w / 2 - cos * (w / 2) - sin * (h / 2)
    to_y = h / 2 + sin * (w / 2) - cos * (h / 2)

    def fixed(value: Tensor) -> Tensor:
        return torch.trunc(value * 65536 + torch.where(value < 0, -0.5, 0.5)).long()[:, None, None]

    i, j = torch.arange(h, device=x.device)[None, :, None], torch.arange(w, device=x.device)[None, None, :]
    columns = (fixed(to_x + cos / 2 + sin / 2) + i * fixed(sin) + j * fixed(cos)) >> 16
    rows = (fixed(to_y - sin / 2 + cos / 2) + i * fixed(cos) + j * fixed(-sin)) >> 16
    inside = (rows >= 0) & (rows < h) & (columns >= 0) & (columns < w)
    moved = picked(x, rows.clamp(0, h - 1), columns.clamp(0, w - 1))
    return moved.masked_fill(~inside[:, None], 0)


def whole(step: str, option: str, value: Any) -> list[str]:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return []
    return [f"{step}: {option}={value!r} is not a whole number above 0"]


def probability(step: str, value: Any) -> list[str]:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1:
        return []
    return [f"{step}: p={value!r} is not a probability above 0 and up to 1"]
