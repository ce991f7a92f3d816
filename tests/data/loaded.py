"""Reads a data set from files as the catalogue does, and asks for refusals."""

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from holdfast.data.bring import check_options
from holdfast.data.catalog import catalog
from holdfast.data.readers.tree import tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused


def loaded(name: str, path: Path, **options) -> Dataset:
    """By the first layout of this entry that fits."""
    entry = catalog()[name]
    full = check_options(entry, options)
    with tree(path) as held:
        layout = next(layout for layout in entry.layouts if layout.fits(held))
        return layout.read(held, **full)


def refused(name: str, path: Path, **options) -> str:
    with pytest.raises(Refused) as caught:
        loaded(name, path, **options)
    return str(caught.value)


def digest(array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def idx_file(path: Path, array: np.ndarray) -> None:
    """The format of yann.lecun.com/exdb/mnist, written out."""
    kind = {"uint8": 0x08, "int32": 0x0C}[array.dtype.name]
    held = struct.pack(f">BBBB{array.ndim}i", 0, 0, kind, array.ndim, *array.shape)
    held += array.astype(array.dtype.newbyteorder(">")).tobytes()
    path.write_bytes(gzip.compress(held, 1) if path.suffix == ".gz" else held)
