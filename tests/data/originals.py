"""Small data sets in the layouts in which their authors publish them, written by the tests."""

import gzip
import io
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from PIL import Image


def pixels(n, *shape, seed=5):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def save_text(pickler: Any, text: bytes) -> None:
    short = len(text) < 256
    pickler.write(b"U" + bytes([len(text)]) + text if short else b"T" + len(text).to_bytes(4, "little") + text)
    pickler.memoize(text)


PICKLER: Any = pickle._Pickler  # the one in Python, whose table can be changed
Python2 = type("Python2", (PICKLER,), {"dispatch": {**PICKLER.dispatch, bytes: save_text}})


def python2(value):
    """Bytes as Python 2 pickled its strings, which is how the files of CIFAR hold their keys and pixels."""
    out = io.BytesIO()
    Python2(out, protocol=2).dump(value)
    return out.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def cifar10(folder: Path, x, y, test_x, test_y):
    """cifar-10-batches-py; images [n, 3, 32, 32], dealt over the five batches."""
    folder.mkdir(parents=True)
    parts = zip(np.array_split(x, 5), np.array_split(y, 5), strict=True)
    batches = {f"data_batch_{k}": part for k, part in enumerate(parts, 1)}
    for name, (images, labels) in {**batches, "test_batch": (test_x, test_y)}.items():
        held = {
            b"batch_label": name.encode(),
            b"labels": [int(n) for n in labels],
            b"data": np.ascontiguousarray(images.reshape(len(images), -1)),
            b"filenames": [b"a_%d.png" % n for n in range(len(labels))],
        }
        (folder / name).write_bytes(python2(held))
    (folder / "batches.meta").write_bytes(python2({b"label_names": [b"airplane"] * 10}))
    return folder


def cifar100(folder: Path, x, fine, coarse, test_x, test_fine, test_coarse):
    folder.mkdir(parents=True)
    for name, (images, f, c) in {"train": (x, fine, coarse), "test": (test_x, test_fine, test_coarse)}.items():
        held = {
            b"fine_labels": [int(n) for n in f],
            b"coarse_labels": [int(n) for n in c],
            b"data": np.ascontiguousarray(images.reshape(len(images), -1)),
        }
        (folder / name).write_bytes(python2(held))
    (folder / "meta").write_bytes(python2({b"fine_label_names": [b"apple"] * 100}))
    return folder


def idx(path: Path, array):
    head = b"\0\0\x08" + bytes([array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    held = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(held) if path.suffix == ".gz" else held)


def mnist(folder: Path, x, y, test_x, test_y, ending=".gz"):
    folder.mkdir(parents=True)
    for name, array in (("train-images-idx3", x), ("train-labels-idx1", y), ("t10k-images-idx3", test_x), ("t10k-labels-idx1", test_y)):  # fmt: skip  # noqa: E501
        idx(folder / f"{name}-ubyte{ending}", array)
    return folder


def stl10(folder: Path, x, y, test_x, test_y):
    """Column-major images, labels from 1."""
    folder.mkdir(parents=True)
    for name, images, labels in (("train", x, y), ("test", test_x, test_y)):
        (folder / f"{name}_X.bin").write_bytes(np.ascontiguousarray(images.transpose(0, 1, 3, 2)).tobytes())
        (folder / f"{name}_y.bin").write_bytes((np.asarray(labels) + 1).astype(np.uint8).tobytes())
    return folder


def png(image, kind="PNG"):
    """An image [c, h, w] as a file."""
    out = io.BytesIO()
    Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)).save(out, kind)
    return out.getvalue()


def put(folder: Path, files):
    """Files by their path inside."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def zipped(path: Path, files):
    with zipfile.ZipFile(path, "w") as out:
        for name, data in files.items():
            out.writestr(name, data)
    return path


def tarred(path: Path, folder: Path):
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as out:
        out.add(folder, folder.name)
    return path


def parquet(path: Path, columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def as_rows(images):
    """What the hub's image columns hold."""
    return [{"bytes": png(image), "path": None} for image in images]


def arrow(path: Path, columns):
    """As `datasets` keeps its tables."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.table(columns)
    with pyarrow.ipc.new_stream(path, table.schema) as out:
        out.write_table(table)
