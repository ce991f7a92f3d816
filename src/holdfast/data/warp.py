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
    """Bytes [N, C, H, W] -> the same, whose pixel (i, j) is the image's value at matrix @ (i, j, 1); matrix [N, 2, 3]."""
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
    for r, a in zip(rows, of_rows, strict=True):
        for k, b in zip(columns, of_columns, strict=True):
            index = (r * w + k).view(n, 1, -1).expand(n, c, -1)
            total = total + held.gather(2, index) * (a * b).view(n, 1, -1)
    return total.view(n, c, h, w)


def taps(place: Tensor, length: int) -> tuple[list[Tensor], list[Tensor]]:
    """The four coefficients that count at a place, and the B-spline's weight of each."""
    first = place.floor()
    y = place - first
    z = 1 - y
    outer, inner = z**3 / 6, (y * y * (y - 2) * 3 + 4) / 6
    other = (z * z * (z - 2) * 3 + 4) / 6
    at = [first.long() + k for k in (-1, 0, 1, 2)]
    at = [torch.where(p < length, p.abs(), 2 * (length - 1) - p) for p in at]
    return at, [outer, inner, other, 1 - outer - inner - other]


def filtering(length: int, device: torch.device) -> Tensor:
    """The matrix [L, L] from pixels to coefficients: the inverse of (1, 4, 1) / 6 with mirrored ends, in closed form.

    On a signal of period 2 (L - 1) the inverse is a convolution with sqrt(3) POLE^|k|, summed over the periods; a pixel
    that is no end stands twice in that signal.
    """
    period = 2 * (length - 1)
    at = torch.arange(length, dtype=torch.float64, device=device)

    def kernel(k: Tensor) -> Tensor:  # 0 <= k <= period, which is even: so are k and period - k, or neither
        sign = 1 - 2 * (k % 2)
        return sign * math.sqrt(3) * ((-POLE) ** k + (-POLE) ** (period - k)) / (1 - POLE**period)

    direct, thrown_back = kernel((at[:, None] - at).abs()), kernel(at[:, None] + at)
    end = (at == 0) | (at == length - 1)
    return torch.where(end, direct, direct + thrown_back)
