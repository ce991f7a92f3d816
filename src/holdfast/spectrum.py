"""The spectral high-pass projector of SpecGradFilter (eq. 6-7) and FedFFT (eq. 5-8)."""

from __future__ import annotations

import torch
from torch import Tensor


def highpass(v: Tensor, r: float | Tensor) -> Tensor:
    """Flattens, zeroes the lowest floor(r L) of the L = floor(n/2) + 1 rFFT bins, and goes back.

    A tensor so small that floor(r L) = 0 passes untouched, to the bit.
    """
    flat = v.reshape(-1)
    bins = torch.fft.rfft(flat)
    low = torch.floor(torch.as_tensor(r, dtype=torch.float64, device=v.device) * len(bins))
    kept = torch.where(torch.arange(len(bins), device=v.device) >= low, bins, 0)
    return torch.where(low > 0, torch.fft.irfft(kept, n=len(flat)), flat).view(v.shape)
