"""Filters of one tensor: the projector of SpecGradFilter (eq. 6-7) and FedFFT (eq. 5-8), and what it is compared with.

`r` may be a tensor, so what it decides is decided by masks.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from holdfast import noise
from holdfast.errors import Refused
from holdfast.vector import Layout, Vector

WORDS = ("all", "matrix", "conv", "linear")


def highpass(v: Tensor, r: float | Tensor, band: str = "low", key: Tensor | None = None, least: int = 0) -> Tensor:
    """Flattens, zeroes floor(r L) of the L = floor(n/2) + 1 rFFT bins, and goes back.

    band: the lowest bins, the highest, or those that `key` draws. At least `least` go; where none goes the tensor
    passes untouched, to the bit.
    """
    flat = v.reshape(-1)
    bins = torch.fft.rfft(flat)
    gone = count(r, len(bins), least, v.device)
    place = torch.arange(len(bins), device=v.device)
    if band == "high":
        place = place.flip(0)
    elif key is not None and band != "low":
        place = shuffled(key, len(bins)).argsort()
    kept = torch.where(place >= gone, bins, 0)
    return torch.where(gone > 0, torch.fft.irfft(kept, n=len(flat)), flat).view(v.shape)


def count(r: float | Tensor, bins: int, least: int, device: torch.device) -> Tensor:
    """floor(r bins) in float64, where it is exact for the r in use."""
    return torch.floor(torch.as_tensor(r, dtype=torch.float64, device=device) * bins).clamp(min=least)


def shuffled(key: Tensor, n: int) -> Tensor:
    """A permutation that a key draws."""
    return noise.fold(key, torch.arange(n, device=key.device)).argsort(stable=True)


def blurred(v: Tensor, kernel: Tensor) -> Tensor:
    """Circular convolution of the flattened tensor with a kernel of its length, centred at entry 0."""
    flat = v.reshape(-1)
    return torch.fft.irfft(torch.fft.rfft(flat) * torch.fft.rfft(kernel), n=len(flat)).view(v.shape)


def smoothless(v: Tensor, r: float | Tensor, kind: str, width: float | Tensor) -> Tensor:
    """v less its circular moving average ('lap') or its Gaussian smoothing ('gauss').

    The width follows from r so that half the power passes at the filter's edge, r/2 cycles an entry: an average of
    1.51/r entries, rounded to an odd number, or sigma = 0.498/r, cut at 3 sigma. A tensor shorter than that passes.
    """
    n, dtype = v.numel(), v.dtype
    r, given = (torch.as_tensor(t, dtype=torch.float64, device=v.device) for t in (r, width))
    j = torch.arange(n, device=v.device, dtype=torch.float64)
    j = torch.minimum(j, n - j)
    if kind == "lap":
        reach = torch.where(given > 0, (given - 1) / 2, (1.51 / r - 1) / 2).round()
        kernel = (j <= reach).double()
    else:
        sigma = torch.where(given > 0, given, 0.498 / r)
        reach = torch.floor(3 * sigma)
        kernel = torch.exp(-0.5 * (j / sigma).square()) * (j <= reach)
    smooth = blurred(v, (kernel / kernel.sum()).to(dtype))
    return torch.where(2 * reach + 1 <= n, v - smooth, v)


def per_kernel(v: Tensor, r: float | Tensor, least: int) -> Tensor:
    """Of each (out, in) kernel the lowest floor(r B) of its B rfft2 bins by radius, whole shells of equal radius."""
    height, width = v.shape[-2:]
    y, x = torch.arange(height, device=v.device), torch.arange(width // 2 + 1, device=v.device)
    # Over a common denominator, so that equal radii compare equal.
    radius = (torch.minimum(y, height - y) * width).square()[:, None] + (x * height).square()[None, :]
    below = (radius.flatten()[None, :] < radius.flatten()[:, None]).sum(1).view(radius.shape)
    gone = count(r, radius.numel(), least, v.device)
    kept = torch.where(below >= gone, torch.fft.rfft2(v), 0)
    return torch.where(gone > 0, torch.fft.irfft2(kept, s=(height, width)), v)


class Options(Protocol):
    """What `removed` reads of the part that asks."""

    @property
    def r(self) -> float: ...
    @property
    def kind(self) -> str: ...
    @property
    def band(self) -> str: ...
    @property
    def order(self) -> str: ...
    @property
    def width(self) -> float: ...
    @property
    def min_bins(self) -> str | int: ...
    @property
    def on_1x1(self) -> str: ...


READS = {"fft": "band order min_bins", "lap": "order width", "gauss": "order width", "fft2": "min_bins on_1x1"}
UNREAD: dict[str, tuple[object, ...]] = {
    "band": ("low",), "order": ("natural",), "min_bins": ("auto", 0), "width": (0.0,), "on_1x1": ("skip",),
}  # fmt: skip


def idle(f: Options) -> list[str]:
    """Options that were given and that this kind does not read; and an average over an even number of entries."""
    unread = [key for key in UNREAD if key not in READS[f.kind].split() and getattr(f, key) not in UNREAD[key]]
    even = f.kind == "lap" and isinstance(f.width, float) and f.width > 0 and f.width % 2 != 1
    return unread + [f"the even width={f.width:g}"] * even


def removed(v: Tensor, f: Options, key: Tensor, order: Tensor) -> Tensor:
    """One tensor without what a filter takes out; `key` draws bins, `order` the order of the entries."""
    least = f.min_bins if isinstance(f.min_bins, int) else int(f.kind == "fft2")
    if f.kind == "fft2":
        if v.dim() != 4 or (v.shape[2:].numel() == 1 and f.on_1x1 == "skip"):
            return v
        if v.shape[2:].numel() == 1:
            return torch.zeros_like(v) if f.on_1x1 == "zero" else highpass(v, f.r)
        return per_kernel(v, f.r, least)
    if v.dim() == 4 and f.order != "natural":  # the other tensors keep their order (AD A16)
        n = v.numel()
        place = torch.arange(n, device=v.device).view(v.shape)
        place = shuffled(order, n) if f.order == "random" else place.permute(*map(int, f.order)).reshape(-1)
        flat = without(v.reshape(-1)[place], f, key, least)
        return flat[place.argsort()].view(v.shape)
    return without(v, f, key, least)


def without(v: Tensor, f: Options, key: Tensor, least: int) -> Tensor:
    if f.kind == "fft":
        return highpass(v, f.r, f.band, key, least)
    return smoothless(v, f.r, f.kind, f.width)


def known_order(order: str) -> bool:
    return order in ("natural", "random") or sorted(order) == ["0", "1", "2", "3"]


def centred(g: Tensor, per: str) -> Tensor:
    """Less its mean per output channel, per (out, in) kernel, per tensor, or per output channel over live taps."""
    if per == "tensor":
        return g - g.mean() if g.numel() > 1 else g
    if per == "kernel":
        return g - g.mean((2, 3), keepdim=True) if g.dim() == 4 and math.prod(g.shape[2:]) > 1 else g
    if g.dim() < 2:
        return g
    if per == "live" and g.dim() == 4:  # a tap that sees no data has no gradient anywhere, and gets none here
        live = (g != 0).flatten(0, 1).any(0).to(g.dtype)
        seen = (live.sum() * g.shape[1]).clamp(min=1)
        return g - live * (g.flatten(1).sum(1) / seen).view(-1, 1, 1, 1)
    return g - g.flatten(1).mean(1).view(-1, *[1] * (g.dim() - 1))


def within_scope(name: str, shape: tuple[int, ...] | torch.Size, scope: str) -> bool:
    kinds = {"all": True, "matrix": len(shape) > 1, "conv": len(shape) == 4, "linear": len(shape) == 2}
    return kinds[scope] if scope in kinds else any(word.strip() in name for word in scope.split(","))


def require_scope(layout: Layout, scope: str, part: str) -> None:
    if not any(within_scope(n, s, scope) for n, s in zip(layout.names, layout.shapes, strict=True)):
        raise Refused(f"{part}(scope={scope!r}) means no tensor of the model; it has {', '.join(layout.names)}; "
                      f"give one of {', '.join(WORDS)}, or parts of names separated by commas")  # fmt: skip


def matched(layout: Layout, before: Vector, after: Vector, match: str) -> Vector:
    """Made as long as before, tensor by tensor or as a whole; what is left of rounding alone is not blown up."""
    if match == "none":
        return after
    if match == "model":
        return after * ratio(before, after)
    was = layout.split(before)
    return layout.map(lambda name, t: t * ratio(was[name], t), after)


def ratio(a: Tensor, b: Tensor) -> Tensor:
    """||a||/||b||, or 1 where b is nothing beside a."""
    length, other = a.norm(), b.norm()
    some = other > 1e-6 * length
    return torch.where(some, length / torch.where(some, other, 1), 1)
