"""Affine maps of images by cubic splines: scipy.ndimage.affine_transform with its defaults, batched over images.

Its defaults are: order 3, the spline mirrored at the first and last pixel, 0 wherever the map leaves the image, and
results rounded half up to a byte. In float64, so that the bytes do not hang on the order of a sum.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

POLE = math.sqrt(3) - 2


def warp(x: Tensor, matrix: Tensor) -> Tensor:
    """Bytes [N, C, H, W], matrix [N, 2, 3] -> bytes: at (i, j) the image's value at matrix @ (i, j, 1)."""
    h, w = x.shape[-2:]
    i = torch.arange(h, dtype=torch.float64, device=x.device)[None, :, None]
    j = torch.arange(w, dtype=torch.float64, device=x.device)[None, None, :]
    m = matrix[:, :, :, None, None]
    row, column = (m[:, k, 2] + i * m[:, k, 0] + j * m[:, k, 1] for k in (0, 1))  # [N, H, W] each
    inside = (row >= 0) & (row <= h - 1) & (column >= 0) & (column <= w - 1)
    value = spline(x, row.clamp(0, h - 1), column.clamp(0, w - 1))
    value = torch.where(inside[:, None], value, 0)
    return (value.clamp(min=0) + 0.5).clamp(max=255).to(torch.uint8)


def spline(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """The cubic spline through the pixels of [N, C, H, W] at places [N, H, W] that lie in the image."""
    n, c, h, w = x.shape
    held = torch.matmul(filtering(h, x.device), torch.matmul(x.to(torch.float64), filtering(w, x.device).T)).flatten(2)
    (rows, of_rows), (columns, of_columns) = taps(row, h), taps(column, w)
    total = torch.zeros(n, c, h * w, dtype=torch.float64, device=x.device)
    for k in range(4):  # four by four, for a GPU does this to every image of a batch
        index = (rows[:, k : k + 1] * w + columns).view(n, 1, 4 * h * w).expand(n, c, 4 * h * w)
        found = held.gather(2, index).view(n, c, 4, h * w) * of_columns.view(n, 1, 4, h * w)
        total = total + found.sum(2) * of_rows[:, k].reshape(n, 1, h * w)
    return total.view(n, c, h, w)


def taps(place: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The four coefficients that count at each place, and the B-spline's weight of each: [N, 4, H, W] both."""
    first = place.floor()
    y = place - first
    z = 1 - y
    outer, inner = z * z * z / 6, (y * y * (y - 2) * 3 + 4) / 6
    other = (z * z * (z - 2) * 3 + 4) / 6
    at = first.long()[:, None] + torch.arange(-1, 3, device=place.device).view(-1, 1, 1)
    at = torch.where(at < length, at.abs(), 2 * (length - 1) - at)
    return at, torch.stack([outer, inner, other, 1 - outer - inner - other], 1)


def filtering(length: int, device: torch.device) -> Tensor:
    """The matrix [L, L] from pixels to coefficients: the inverse of (1, 4, 1) / 6 with mirrored ends, in closed form.

    On a signal of period 2 (L - 1) the inverse is a convolution with sqrt(3) POLE^|k|, summed over the periods; a pixel
    that is no end stands twice in that signal.
    """
    period = 2 * (length - 1)
    k = torch.arange(period + 1, device=device)
    power = (-POLE) ** k.to(torch.float64)
    sign = 1 - 2 * (k % 2)  # of POLE^k, and of POLE^(period - k), for the period is even
    kernel = sign * (power + power.flip(0)) * (math.sqrt(3) / (1 - POLE**period))
    at = k[:length]
    direct, thrown_back = kernel[(at[:, None] - at).abs()], kernel[at[:, None] + at]
    end = (at == 0) | (at == length - 1)
    return torch.where(end, direct, direct + thrown_back)
