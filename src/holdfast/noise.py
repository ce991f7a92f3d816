"""Random numbers as a pure function of a key, so that every executor draws the same ones.

Keys are int64 tensors holding 32 bits; the mixing multiplies by constants below 2^31, so no product overflows.
"""

from __future__ import annotations

import math
import zlib

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF


def mix(key: Tensor) -> Tensor:
    """One round of a 32-bit avalanche hash (the constants of Wellons' hash prospector)."""
    key = key & _MASK
    key = ((key ^ (key >> 16)) * 0x21F0AAAD) & _MASK
    key = ((key ^ (key >> 15)) * 0x735A2D97) & _MASK
    return key ^ (key >> 15)


def fold(key: Tensor, *values: Tensor | int) -> Tensor:
    """A new key from a key and whatever tells it apart: a round, a client, a step, a layer."""
    for value in values:
        key = mix(mix(key) + value + 0x9E3779B9)
    return key


def tag(text: str) -> int:
    """A name as a number to fold into a key."""
    return zlib.crc32(text.encode())


def uniform(key: Tensor, index: Tensor) -> Tensor:
    """A number in [0, 1) for every index; the same index gets the same number whatever stands around it."""
    return fold(key, index).to(torch.float32) * 2.0**-32


def normal(key: Tensor, index: Tensor) -> Tensor:
    """A standard normal number for every index, by Box and Muller's transform in float64; none is beyond 6.7."""
    u, v = ((fold(key, 2 * index + i).double() + 1) * 2.0**-32 for i in (0, 1))  # in (0, 1]
    return (-2 * u.log()).sqrt() * (2 * math.pi * v).cos()
