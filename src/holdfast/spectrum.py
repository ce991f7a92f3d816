"""Filters of one tensor: the projector of SpecGradFilter (eq. 6-7) and FedFFT (eq. 5-8), and what it is compared with.

`r` may be a tensor, so what it decides is decided by masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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


def kept_key(kept: Tensor, drawn: Tensor) -> Tensor:
    """A client's own key: the one that it keeps, or 24 bits of the drawn one, which a float holds."""
    return torch.where(kept < 0, drawn & 0xFFFFFF, kept.long())


def blurred(flat: Tensor, kernel: Tensor) -> Tensor:
    """Circular convolution of a vector with a kernel of its length, centred at entry 0."""
    return torch.fft.irfft(torch.fft.rfft(flat) * torch.fft.rfft(kernel), n=len(flat))


def smoothless(v: Tensor, f: Options) -> Tensor:
    """v less its moving average ('lap'), its means over blocks ('block') or its Gaussian smoothing ('gauss').

    The width follows from r so that half the power passes at the filter's edge, r/2 cycles an entry: an average of
    1.51/r entries, rounded to an odd number, or sigma = 0.498/r, cut at 3 sigma. A tensor shorter than that passes, or
    takes the largest odd width that it holds; one of less than three entries always passes.
    """
    n = v.numel()
    r, given = (torch.as_tensor(t, dtype=torch.float64, device=v.device) for t in (f.r, f.width))
    sigma = torch.where(given > 0, given, 0.498 / r)
    width = torch.where(given > 0, given, 1 + 2 * ((1.51 / r - 1) / 2).round())
    reach = torch.floor(3 * sigma) if f.kind == "gauss" else (width - 1) / 2
    fits = 2 * reach + 1 <= n
    reach = torch.where(fits, reach, (n - 1) // 2)
    if f.short == "shrink" and n >= 3:
        fits = r + given > 0  # nothing is taken out by an average without end
    if f.kind == "block":
        smooth = block_means(v.reshape(-1), 2 * reach + 1)
    else:
        smooth = averaged(v.reshape(-1), f, reach, sigma)
    return torch.where(fits, v - smooth.view(v.shape), v)


def averaged(flat: Tensor, f: Options, reach: Tensor, sigma: Tensor) -> Tensor:
    """Every entry the mean of those at most `reach` away, equal or Gaussian; beyond the ends what `pad` says."""
    n = len(flat)
    whole, inside = beyond(flat, f.pad)
    j = torch.arange(len(whole), device=flat.device, dtype=torch.float64)
    j = torch.minimum(j, len(whole) - j)
    kernel = (torch.exp(-0.5 * (j / sigma).square()) if f.kind == "gauss" else torch.ones_like(j)) * (j <= reach)
    kernel = (kernel / kernel.sum()).to(flat.dtype)
    start = (len(whole) - n) // 2
    smooth = blurred(whole, kernel)[start : start + n]
    return smooth if inside is None else smooth / blurred(inside, kernel)[start : start + n]


def beyond(flat: Tensor, pad: str) -> tuple[Tensor, Tensor | None]:
    """A vector with what lies beyond its ends, as far as it is long; for zeros, which do not count, where it is."""
    n = len(flat)
    if pad == "circular":
        return flat, None
    j = torch.arange(1 - n, 2 * n - 1, device=flat.device)
    if pad == "reflect":
        return flat[(n - 1) - (j.remainder(max(2 * n - 2, 1)) - (n - 1)).abs()], None
    held = flat[j.clamp(0, n - 1)]
    inside = ((j >= 0) & (j < n)).to(flat.dtype)
    return (held * inside, inside) if pad == "zero" else (held, None)


def block_means(flat: Tensor, width: Tensor) -> Tensor:
    """Every entry the mean of its block of `width`; the last block may be shorter."""
    block = torch.floor(torch.arange(len(flat), device=flat.device, dtype=torch.float64) / width).long()
    sums, counts = (torch.zeros_like(flat).scatter_add(0, block, t) for t in (flat, torch.ones_like(flat)))
    return (sums / counts.clamp(min=1))[block]


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
    def scope(self) -> str: ...
    @property
    def on(self) -> str: ...
    @property
    def match(self) -> str: ...
    @property
    def width(self) -> float: ...
    @property
    def pad(self) -> str: ...
    @property
    def short(self) -> str: ...
    @property
    def min_bins(self) -> str | int: ...
    @property
    def on_1x1(self) -> str: ...


READS = {
    "fft": "band order min_bins", "lap": "order width pad short", "block": "order width short",
    "gauss": "order width pad short", "fft2": "min_bins on_1x1",
}  # fmt: skip
UNREAD: dict[str, tuple[object, ...]] = {
    "band": ("low",), "order": ("natural",), "min_bins": ("auto", 0), "width": (0.0,), "on_1x1": ("skip",),
    "pad": ("circular",), "short": ("skip",),
}  # fmt: skip


def idle(f: Options) -> list[str]:
    """Options that were given and that this kind does not read; and an average over an even number of entries."""
    unread = [key for key in UNREAD if key not in READS[f.kind].split() and getattr(f, key) not in UNREAD[key]]
    even = f.kind == "lap" and isinstance(f.width, float) and f.width > 0 and f.width % 2 != 1
    return unread + [f"the even width={f.width:g}"] * even


def refusal(f: Options, parts: tuple[object, ...]) -> str | None:
    """What specgrad cannot do with these options, or beside these parts."""
    if f.on == "all" and any(getattr(p, "scope", "") == "data_only" for p in parts if p is not f):
        return "specgrad(on='all') filters what clip(scope='data_only') takes apart; take another scope"
    if unread := idle(f):
        return f"specgrad(kind={f.kind!r}) has no use for {' and '.join(unread)}; leave that out"
    return None if known_order(f.order) else f"specgrad(order={f.order!r}) is no order of four axes"


def filtered(layout: Layout, g: Vector, f: Options, bins: Tensor, order: Tensor) -> Vector:
    """Every tensor in scope without what the filter takes out; each has keys of its own."""
    require_scope(layout, f.scope, "specgrad")

    def one(name: str, t: Tensor) -> Tensor:
        keys = (noise.fold(key, layout.names.index(name)) for key in (bins, order))
        return removed(t, f, *keys) if within_scope(name, t.shape, f.scope) else t

    return matched(layout, g, layout.map(one, g), f.match)


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
        place = shuffled(order, n) if f.order.startswith("random") else place.permute(*map(int, f.order)).reshape(-1)
        flat = without(v.reshape(-1)[place], f, key, least)
        return flat[place.argsort()].view(v.shape)
    return without(v, f, key, least)


def without(v: Tensor, f: Options, key: Tensor, least: int) -> Tensor:
    if f.kind == "fft":
        return highpass(v, f.r, f.band, key, least)
    return smoothless(v, f)


def known_order(order: str) -> bool:
    return order in ("natural", "random", "random_client") or sorted(order) == ["0", "1", "2", "3"]


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


def within(
    layout: Layout, f: Callable[[str, Tensor], Tensor], v: Vector, match: str = "none", scope: str = "all"
) -> Vector:
    """`f` on the shared tensors in scope, made as long as before; private ones stay as they are (MS 11.2)."""
    shared = layout.shared(v)

    def one(name: str, t: Tensor) -> Tensor:
        return f(name, t) if name not in layout.private and within_scope(name, t.shape, scope) else t

    changed = matched(layout, shared, layout.map(one, shared), match)
    return v - shared + changed if layout.private else changed


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
