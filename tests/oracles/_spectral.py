"""The spectral filters of ML 7 on lists of tensors (AD A3, A16 for fft2 and the orders). One function an operator.

The moving averages are sums over shifted copies in space, not products in frequency.
"""

from typing import Any

import numpy as np


def removed_bins(d, r, band="low", least=0):
    """Which of the L = floor(d/2) + 1 bins of a tensor of d entries go: the first or the last k = floor(r L)."""
    L = d // 2 + 1
    k = min(max(int(np.floor(r * L)), least), L)
    return list(range(k)) if band == "low" else list(range(L - k, L))


def without(v, bins):
    """A flat vector without some of its rFFT bins; the inverse gets its length (ML 7.1)."""
    spectrum = np.fft.rfft(v)
    spectrum[list(bins)] = 0
    return np.fft.irfft(spectrum, n=len(v))


def entry(v, i, pad):
    """Entry i of a vector that goes on beyond its ends; None where nothing is (ML 7.4)."""
    n = len(v)
    if 0 <= i < n or pad == "circular":
        return v[i % n]
    if pad == "zero":
        return None
    if pad == "replicate":
        return v[0] if i < 0 else v[-1]
    while not 0 <= i < n:  # reflect: the end itself stands once
        i = -i if i < 0 else 2 * (n - 1) - i
    return v[i]


def minus_smooth(v, kernel, pad="circular", short="skip"):
    """v - Smooth(v); a tensor shorter than the kernel passes, or takes as much of its middle as it holds (ML 7.4)."""
    half = len(kernel) // 2
    if len(v) < len(kernel):
        if short == "skip" or len(v) < 3:
            return v
        half = (len(v) - 1) // 2
        kernel = kernel[len(kernel) // 2 - half : len(kernel) // 2 + half + 1]
    out = np.empty_like(v)
    for i in range(len(v)):
        seen = [(weight, entry(v, i + j, pad)) for j, weight in zip(range(-half, half + 1), kernel, strict=True)]
        seen = [(weight, x) for weight, x in seen if x is not None]  # what is not there does not count
        out[i] = v[i] - sum(weight * x for weight, x in seen) / sum(weight for weight, _ in seen)
    return out


def minus_blocks(v, W, short="skip"):
    """LAP-D's other reading: less the mean of each block of W entries; the last block may be shorter (ML 7.4)."""
    if len(v) < W:
        if short == "skip" or len(v) < 3:
            return v
        W = 2 * ((len(v) - 1) // 2) + 1
    return np.concatenate([v[i : i + W] - v[i : i + W].mean() for i in range(0, len(v), W)])


def box(r, width=0.0):
    """LAP-D: a moving average of odd width whose half-power point is r/2 cycles an entry: W r/2 = 0.755."""
    W = int(width) if width > 0 else 2 * round((1.51 / r - 1) / 2) + 1
    return np.full(W, 1 / W)


def bell(r, width=0.0):
    """GD: a Gaussian, sigma r/2 = 0.249, cut at three sigma, sum 1."""
    sigma = width if width > 0 else 0.498 / r
    j = np.arange(-int(np.floor(3 * sigma)), int(np.floor(3 * sigma)) + 1)
    weights = np.exp(-(j**2) / (2 * sigma**2))
    return weights / weights.sum()


def kernelwise(v, r, least=1, on_1x1="skip"):
    """2-D FFT of each (out, in) kernel of a convolution: the k bins of smallest radius go, in whole shells (AD A3)."""
    if v.ndim != 4:
        return v
    if v.shape[2] * v.shape[3] == 1:
        if on_1x1 == "hp1d":
            return without(v.reshape(-1), removed_bins(v.size, r)).reshape(v.shape)
        return np.zeros_like(v) if on_1x1 == "zero" else v
    kh, kw = v.shape[2:]
    radius = np.round(np.fft.fftfreq(kh)[:, None] ** 2 + np.fft.rfftfreq(kw)[None, :] ** 2, 12)
    k = max(int(np.floor(r * radius.size)), least)
    nearer = (radius.reshape(-1)[None, :] < radius.reshape(-1)[:, None]).sum(axis=1).reshape(radius.shape)
    return np.fft.irfft2(np.where(nearer < k, 0, np.fft.rfft2(v)), s=(kh, kw))


def inside(name, v, scope):
    """Whether a tensor is filtered (ML 7.2)."""
    kinds = {"all": True, "matrix": v.ndim >= 2, "conv": v.ndim == 4, "linear": v.ndim == 2}
    return kinds[scope] if scope in kinds else any(word.strip() in name for word in scope.split(","))


def matched(after, before, match):
    """What is left, made as long as it was: each tensor, or the whole model."""

    def size(tensors):
        return np.sqrt(sum(float((t**2).sum()) for t in tensors))

    if match == "none":
        return after
    groups = [[i] for i in range(len(after))] if match == "tensor" else [list(range(len(after)))]
    found = list(after)
    for group in groups:
        left = size(after[i] for i in group)
        scale = size(before[i] for i in group) / left if left > 0 else 1.0
        for i in group:
            found[i] = after[i] * scale
    return found


def specgrad(
    tensors, r=0.05, kind="fft", band="low", order="natural", scope="all", match="none", width=0.0,
    min_bins: Any = "auto", on_1x1="skip", removed: Any = None, shuffled: Any = None, names: Any = None,
    pad="circular", short="skip",
):  # fmt: skip
    """`removed`: the bins of each tensor for band random and fresh; `shuffled`: its permutation for order random."""
    least = (1 if kind == "fft2" else 0) if min_bins == "auto" else min_bins

    def flat(v, i):
        if kind == "lap":
            return minus_smooth(v, box(r, width), pad, short)
        if kind == "block":
            return minus_blocks(v, int(width) if width > 0 else len(box(r)), short)
        if kind == "gauss":
            return minus_smooth(v, bell(r, width), pad, short)
        return without(v, removed_bins(len(v), r, band, least) if removed is None else removed[i])

    def one(v, i):
        if not inside(names[i] if names else "", v, scope):
            return v
        if kind == "fft2":
            return kernelwise(v, r, least, on_1x1)
        if order == "natural" or v.ndim != 4:  # AD A16: only convolutions are re-ordered
            return flat(v.reshape(-1), i).reshape(v.shape)
        if order == "random":  # entry j of what is filtered is entry shuffled[j] of the tensor
            out = np.empty(v.size)
            out[shuffled[i]] = flat(v.reshape(-1)[shuffled[i]], i)
            return out.reshape(v.shape)
        axes = [int(c) for c in order]
        turned = np.transpose(v, axes)
        return np.transpose(flat(turned.reshape(-1), i).reshape(turned.shape), np.argsort(axes))

    return matched([one(v, i) for i, v in enumerate(tensors)], tensors, match)
