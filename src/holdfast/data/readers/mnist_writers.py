"""MNIST with the writer of every digit: MNIST's own files and the extended labels of QMNIST (Yadav and Bottou, 2019).

QMNIST's training set is MNIST's, row by row; the first 10,000 of its 60,000 test rows are MNIST's test set. Its label
files hold eight numbers a digit: class, NIST partition (hsf), writer, number of the digit by that writer, NIST class,
number in NIST, a mark of duplicates, unused.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Column, Dataset
from holdfast.errors import Refused

PARTS = (("train", "train", "train"), ("t10k", "t10k", "test"))  # MNIST's images, its labels, QMNIST's labels
CLASS, PARTITION, WRITER = 0, 1, 2
TYPES = {0x08: ">u1", 0x0C: ">i4"}


def files(part: tuple[str, str, str]) -> tuple[str, str, str]:
    """Patterns: with '-' or '.' before idx, as they are distributed in both forms, and with or without .gz."""
    images, labels, known = part
    return f"*/{images}-images?idx3-ubyte*", f"*/{labels}-labels?idx1-ubyte*", f"*/qmnist-{known}-labels?idx2-int*"


def read(tree: Tree) -> Dataset:
    (x, y, a), (test_x, test_y, b) = (part(tree, *files(names)) for names in PARTS)
    columns = {name: column(a[:, i], b[:, i], form) for name, i, form in (("writer", WRITER, "{}"),
                                                                        ("hsf", PARTITION, "hsf_{}"))}  # fmt: skip
    return Dataset.of(x, y, test_x, test_y, classes=10, name="mnist_writers", columns=columns)


def part(tree: Tree, images: str, labels: str, known: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    names = [either(tree, pattern) for pattern in (images, labels, known)]
    x = numbers(tree, names[0], (None, 28, 28))
    y = numbers(tree, names[1], (None,))
    more = numbers(tree, names[2], (None, 8))
    if len(x) != len(y) or len(more) < len(y):
        raise Refused(
            f"{tree.where(names[2])}: has {len(more)} rows for the {len(x)} images of {tree.where(names[0])} and the "
            f"{len(y)} labels of {tree.where(names[1])}; every image needs one of each"
        )
    more = more[: len(y)]
    other = int((more[:, CLASS] != y).sum())
    if other:
        raise Refused(
            f"{tree.where(names[2])}: gives {other} of {len(y)} digits another class than {tree.where(names[1])}: "
            "these are not labels of the same images in the same order"
        )
    return x[:, None], y, more


def numbers(tree: Tree, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """An idx file of bytes or 32-bit numbers: 0, 0, type, number of dimensions, their sizes, the numbers; big-endian.

    It must have this shape; None is any number.
    """
    held, where = tree.read(name), tree.where(name)
    if len(held) < 4 or held[:2] != b"\0\0" or held[2] not in TYPES:
        raise Refused(f"{where}: does not begin as an idx file does (two zero bytes, a type); it begins {held[:4]!r}")
    kind, start = np.dtype(TYPES[held[2]]), 4 + 4 * held[3]
    if len(held) < start:
        raise Refused(f"{where}: is cut short within its header; get it again")
    sizes = tuple(int(n) for n in np.frombuffer(held, ">u4", held[3], 4))
    if len(sizes) != len(shape) or any(want not in (None, n) for n, want in zip(sizes, shape, strict=True)):
        said = " x ".join("n" if n is None else str(n) for n in shape)
        raise Refused(f"{where}: holds {' x '.join(map(str, sizes))} numbers, expected were {said}")
    wanted = math.prod(sizes) * kind.itemsize
    if len(held) - start != wanted:
        raise Refused(f"{where}: has {len(held) - start} bytes of numbers where its header promises {wanted}")
    return np.frombuffer(held, kind, offset=start).reshape(sizes)


def either(tree: Tree, pattern: str) -> str:
    """The file itself, or the compressed one where only that is there."""
    found = tree.find(pattern)
    plain = [name for name in found if not name.endswith(".gz")]
    return tree.one(pattern) if len(found) == 1 or len(plain) != 1 else plain[0]


def column(train: np.ndarray, test: np.ndarray, form: str) -> Column:
    """Names in ascending order, those of both parts."""
    known, where = np.unique(np.concatenate([train, test]), return_inverse=True)
    return Column(tuple(form.format(n) for n in known), where[: len(train)], where[len(train) :])


URL = "https://raw.githubusercontent.com/facebookresearch/qmnist/master/"
ENTRIES = (
    Entry(
        name="mnist_writers",
        title="MNIST with the writer of every digit",
        samples="60,000 + 10,000 of 28 x 28 x 1, 10 classes; 539 writers to train, 297 others to test",
        licence="MNIST: none stated; QMNIST's labels: BSD-3",
        home="https://github.com/facebookresearch/qmnist",
        cite="""@inproceedings{yadav2019cold,
  title = {Cold Case: The Lost {MNIST} Digits}, author = {Yadav, Chhavi and Bottou, L{\\'e}on},
  booktitle = {Advances in Neural Information Processing Systems}, volume = {32}, year = {2019}}""",
        layouts=(
            Layout("MNIST's idx files and QMNIST's labels", (*files(PARTS[0]), *files(PARTS[1])), read),
        ),
        files=(
            File("qmnist-train-labels-idx2-int.gz", md5="0058f8dd561b90ffdd0f734c6a30e5e4",
                 url=f"{URL}qmnist-train-labels-idx2-int.gz"),
            File("qmnist-test-labels-idx2-int.gz", md5="5b5b05890a5e13444e108efe57b788aa",
                 url=f"{URL}qmnist-test-labels-idx2-int.gz"),
        ),
        places=("mnist_writers", "."),
        how="put QMNIST's two label files beside MNIST's four files (train-images-idx3-ubyte.gz, ...) in one folder",
        note="no writer is in both parts: a split by writer has no test samples of its clients' own",
    ),
)  # fmt: skip
