"""MNIST with the writer of every digit: MNIST's own files and the extended labels of QMNIST (Yadav and Bottou, 2019).

QMNIST's training set is MNIST's, row by row; the first 10,000 of its 60,000 test rows are MNIST's test set. Its label
files hold eight numbers a digit: class, NIST partition (hsf), writer, number of the digit by that writer, NIST class,
number in NIST, a mark of duplicates, unused.
"""

from __future__ import annotations

import numpy as np

from holdfast.data.columns import Column
from holdfast.data.readers import idx
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

PARTS = (("train", "train"), ("t10k", "test"))  # how MNIST's files begin, and QMNIST's labels go on
CLASS, PARTITION, WRITER, NUMBERS = 0, 1, 2, 8


def read(tree: Tree) -> Dataset:
    (x, y, a), (test_x, test_y, b) = (part(tree, *names) for names in PARTS)
    columns = {
        "writer": column(a[:, WRITER], b[:, WRITER], "{}"),
        "hsf": column(a[:, PARTITION], b[:, PARTITION], "hsf_{}"),
    }
    return Dataset.of(x, y, test_x, test_y, classes=10, name="mnist_writers", columns=columns)


def part(tree: Tree, name: str, known: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = idx.images(tree, f"{name}-images-idx3"), idx.part(tree, f"{name}-labels-idx1")
    found = tree.find(f"*/qmnist-{known}-labels-idx2-int") or tree.find(f"*/qmnist-{known}-labels-idx2-int.gz")
    if len(found) != 1:
        raise Refused(f"{tree.path}: has {len(found)} files qmnist-{known}-labels-idx2-int; give one data set's folder")
    where, more = tree.where(found[0]), extended(tree, found[0])
    if len(x) != len(y) or len(more) < len(y):
        raise Refused(
            f"{where}: has {len(more)} rows for the {len(x)} images and {len(y)} labels of MNIST's {name} files; every "
            "image needs one of each"
        )
    more = more[: len(y)]
    other = int((more[:, CLASS] != y).sum())
    if other:
        raise Refused(
            f"{where}: gives {other} of {len(y)} digits another class than MNIST's {name} labels: these are not labels "
            "of the same images in the same order"
        )
    return x, y, more


def extended(tree: Tree, name: str) -> np.ndarray:
    """A file of QMNIST's labels: 0, 0, 12, 2, the two sizes and the numbers, all of 32 bits and big-endian."""
    held, where = tree.read(name, 1 << 30), tree.where(name)
    head = np.frombuffer(held[:12], ">u4") if len(held) >= 12 else np.zeros(3)
    rows = int(head[1])
    if head[0] != 0x0C02 or head[2] != NUMBERS:
        raise Refused(f"{where}: does not begin as {NUMBERS} 32-bit labels a digit do; it begins {held[:12]!r}")
    if len(held) - 12 != rows * NUMBERS * 4:
        raise Refused(f"{where}: has {len(held) - 12} bytes of labels where its header promises {rows * NUMBERS * 4}")
    return np.frombuffer(held, ">i4", offset=12).reshape(rows, NUMBERS)


def column(train: np.ndarray, test: np.ndarray, form: str) -> Column:
    """Names in ascending order, those of both parts."""
    known, where = np.unique(np.concatenate([train, test]), return_inverse=True)
    return Column(tuple(form.format(n) for n in known), where[: len(train)], where[len(train) :])


NEEDS = (*(f"*/{p}[-.]ubyte*" for p in idx.PARTS), *(f"*/qmnist-{known}-labels-idx2-int*" for _, known in PARTS))
URL = "https://raw.githubusercontent.com/facebookresearch/qmnist/master/"
ENTRIES = (
    Entry(
        name="mnist_writers",
        title="MNIST with the writer of every digit",
        samples="60,000 + 10,000 of 1 x 28 x 28, 10 classes; 539 writers to train, 297 others to test",
        licence="MNIST: none stated; QMNIST's labels: BSD-3",
        home="https://github.com/facebookresearch/qmnist",
        cite="""@inproceedings{yadav2019cold,
  title = {Cold Case: The Lost {MNIST} Digits}, author = {Yadav, Chhavi and Bottou, L{\\'e}on},
  booktitle = {Advances in Neural Information Processing Systems}, volume = {32}, year = {2019}}""",
        layouts=(Layout("MNIST's idx files and QMNIST's labels", NEEDS, read),),
        files=(
            *(file for entry in idx.ENTRIES if entry.name == "mnist" for file in entry.files),
            File("qmnist-train-labels-idx2-int.gz", md5="0058f8dd561b90ffdd0f734c6a30e5e4",
                 url=f"{URL}qmnist-train-labels-idx2-int.gz"),
            File("qmnist-test-labels-idx2-int.gz", md5="5b5b05890a5e13444e108efe57b788aa",
                 url=f"{URL}qmnist-test-labels-idx2-int.gz"),
        ),
        places=("mnist_writers", "MNIST/raw"),
        how="put QMNIST's two label files beside MNIST's four files (train-images-idx3-ubyte.gz, ...) in one folder",
        note="no writer is in both parts: a split by writer has no test samples of its clients' own",
    ),
)  # fmt: skip
