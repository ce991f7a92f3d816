"""Pillow's operations on whole images, batched: every function maps bytes [N, C, H, W] to bytes, equal to Pillow's.

Pillow works in C floats and Python floats that are cut to whole numbers, so the last bit shows. Products are therefore
taken where they are exact (float64 or int64) and rounded once: no compiler can fuse them with the sum that follows.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEVELS = 256


def blend(a: Tensor, b: Tensor, factor: Tensor) -> Tensor:
    """Image.blend: a + factor (b - a) in float32, cut to a byte; `factor` float64, of any shape that broadcasts."""
    product = factor.to(torch.float32).to(torch.float64) * (b.to(torch.float64) - a.to(torch.float64))
    mixed = a.to(torch.float32) + product.to(torch.float32)
    return mixed.clamp(0, LEVELS - 1).to(torch.uint8)


def grey(x: Tensor) -> Tensor:
    """convert("L") [N, 1, H, W] int32: the luma of ITU-R 601 in 16-bit fixed point."""
    x = x.to(torch.int32)
    if x.shape[1] == 1:
        return x
    return (19595 * x[:, :1] + 38470 * x[:, 1:2] + 7471 * x[:, 2:] + 0x8000) >> 16


def color(x: Tensor, factor: Tensor) -> Tensor:
    """ImageEnhance.Color: away from the grey image, or towards it; factor [N]."""
    return blend(grey(x), x, factor.view(-1, 1, 1, 1))


def sharpness(x: Tensor, factor: Tensor) -> Tensor:
    """ImageEnhance.Sharpness: away from ImageFilter.SMOOTH (5 in the middle, 1 around, over 13); edges stay."""
    inner, wide = x[..., 1:-1, 1:-1], x.to(torch.int32)
    lines = wide[..., :-2, :] + wide[..., 1:-1, :] + wide[..., 2:, :]
    box = lines[..., :-2] + lines[..., 1:-1] + lines[..., 2:]
    smooth = (2 * (box + 4 * inner.to(torch.int32)) + 13) // 26  # sum / 13 rounded: a half cannot come up
    out = x.clone()
    out[..., 1:-1, 1:-1] = blend(smooth, inner, factor.view(-1, 1, 1, 1))
    return out


def looked_up(x: Tensor, table: Tensor) -> Tensor:
    """Image.point: each byte replaced by table [N, C, 256] of its image and channel."""
    return table.gather(2, x.flatten(2).long()).view(x.shape)


def levels(x: Tensor) -> Tensor:
    """[1, 1, 256]: every value that a byte has."""
    return torch.arange(LEVELS, device=x.device).view(1, 1, -1)


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    """ImageOps.solarize as a table [N, 1, 256]: what is not below the threshold, inverted."""
    old = levels(x)
    return torch.where(old < threshold.view(-1, 1, 1), old, LEVELS - 1 - old)


def posterize(x: Tensor, bits: Tensor) -> Tensor:
    """ImageOps.posterize as a table: the highest bits kept; `bits` are rounded as Python rounds, half to even."""
    lost = (8 - bits.round().long()).view(-1, 1, 1)
    return levels(x) >> lost << lost


def brightness(x: Tensor, factor: Tensor) -> Tensor:
    """ImageEnhance.Brightness as a table: away from black."""
    old = levels(x)
    return blend(torch.zeros_like(old), old, factor.view(-1, 1, 1)).long()


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    """ImageEnhance.Contrast as a table: away from the mean of the grey image, rounded half up."""
    luma, pixels = grey(x).flatten(1), x.shape[2] * x.shape[3]
    mean = (2 * luma.sum(1) + pixels) // (2 * pixels)
    return blend(mean.view(-1, 1, 1), levels(x), factor.view(-1, 1, 1)).long()


def autocontrast(x: Tensor) -> Tensor:
    """ImageOps.autocontrast as a table [N, C, 256]: the darkest value of a channel to 0, the lightest to 255.

    Pillow cuts v scale - low scale, each product rounded, so some exact results come out one lower; so they do here.
    """
    flat = x.flatten(2)
    low, high = flat.amin(2, keepdim=True).long(), flat.amax(2, keepdim=True).long()
    width = (high - low).clamp(min=1).to(torch.float64)
    scale = torch.full_like(width, 255) / width  # 255 / width would be 255 * (1 / width) in torch, rounded twice
    digits = (torch.frexp(scale).mantissa * 2.0**53).long()  # scale without its power of two; 61 bits with a byte
    unscaled = (levels(x) * digits).to(torch.float64) - (low * digits).to(torch.float64)
    new = torch.trunc(unscaled * (scale / digits.to(torch.float64))).clamp(0, LEVELS - 1).long()
    return torch.where(high > low, new, levels(x))


def equalize(x: Tensor) -> Tensor:
    """ImageOps.equalize as a table [N, C, 256]: a flat histogram, as far as that goes."""
    flat = x.flatten(2).long()
    counts = torch.zeros(*x.shape[:2], LEVELS, dtype=torch.int64, device=x.device)
    counts = counts.scatter_add(2, flat, torch.ones_like(flat))
    last = counts.gather(2, flat.amax(2, keepdim=True))
    step = (flat.shape[2] - last) // 255
    before = counts.cumsum(2) - counts
    safe = step.clamp(min=1)
    new = ((step // 2 + before) // safe).clamp(max=LEVELS - 1)  # Pillow clips what goes above
    return torch.where(step > 0, new, levels(x))
