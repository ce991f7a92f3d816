"""The controls beside the spectral filters, on lists of tensors: ML 6.1, 6.3, 7.5; AD A6."""

import numpy as np
from _spectral import matched, removed_bins, without


def size(v):
    return np.linalg.norm(np.asarray(v).reshape(-1))


def centred(v, per):
    """A tensor without the means of its parts; see `gc`."""
    if per == "tensor":
        return v - v.mean() if v.size > 1 else v
    if per == "kernel":
        return v - v.mean(axis=(2, 3), keepdims=True) if v.ndim == 4 and v.shape[2] * v.shape[3] > 1 else v
    if v.ndim < 2:
        return v
    if per == "live" and v.ndim == 4:
        live = (v != 0).any(axis=(0, 1), keepdims=True)  # [1, 1, kh, kw]: which taps the images reach
        taps = max(v.shape[1] * live.sum(), 1)
        return np.where(live, v - v.sum(axis=(1, 2, 3), keepdims=True) / taps, 0.0)  # dead taps hold zeros anyway
    return v - v.mean(axis=tuple(range(1, v.ndim)), keepdims=True)


def gc(tensors, per="channel", match="none"):
    """Minus the mean per output channel, per (out, in) kernel, per tensor, or per output channel over live taps."""
    return matched([centred(v, per) for v in tensors], tensors, match)


def kept(tensors, r):
    """The length of the high-pass of each tensor."""
    return [size(without(v.reshape(-1), removed_bins(v.size, r))) for v in tensors]


def capped(tensors, limit):
    total = np.sqrt(sum(size(v) ** 2 for v in tensors))
    return [v * min(1.0, limit / total) if total > 0 else v for v in tensors]


def l2(tensors, r=0.05, form="filter", max=1.0):
    """AD A6: norm-matched to the filter, unit norm times the mean norm, or a cap on the whole model."""
    if form == "cap":
        return capped(tensors, max)
    goal = kept(tensors, r) if form == "filter" else [np.mean([size(v) for v in tensors])] * len(tensors)
    return [v * want / size(v) if size(v) > 0 else v for v, want in zip(tensors, goal, strict=True)]


def l2pert(tensors, r=0.01, form="filter", max=0.1):
    """The whole perturbation at the length that the filter would leave, or cut where it exceeds `max` (ML 6.1)."""
    if form == "cap":
        return capped(tensors, max)
    total = np.sqrt(sum(size(v) ** 2 for v in tensors))
    left = np.sqrt(sum(x**2 for x in kept(tensors, r)))
    return [v * left / total if total > 0 else v for v in tensors]


def lower_median(values):
    """torch.median: of an even number of values the smaller of the two in the middle."""
    return np.sort(values)[(len(values) - 1) // 2]


def coordclip(tensors, c=3.0, per="tensor"):
    """Each entry within +- c times the median magnitude, of its tensor or of the model; zero median: untouched."""
    whole = lower_median(np.concatenate([np.abs(v).reshape(-1) for v in tensors]))
    found = []
    for v in tensors:
        limit = c * (whole if per == "model" else lower_median(np.abs(v).reshape(-1)))
        found.append(np.clip(v, -limit, limit) if limit > 0 else v)
    return found
