"""Room for the arrays that a reader fills: in memory, or in a file without a name where they are large."""

from __future__ import annotations

import math
import os
import tempfile

import numpy as np

LARGE = 256 << 20  # from this many bytes on samples are memory-mapped, while they are read and when they are used


def room(shape: tuple[int, ...], dtype: type = np.uint8) -> np.ndarray:
    """An array of zeros. A large one lies in a temporary file (under $TMPDIR) that is gone when the process ends."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is told here, not by a SIGBUS on the first write
            os.posix_fallocate(file.fileno(), 0, size)
        return np.memmap(file, dtype, "r+", shape=shape)
