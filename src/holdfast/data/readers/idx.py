"""MNIST and Fashion-MNIST: IDX files, gzipped or not, and parquet."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from holdfast.data.readers import hub
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

PARTS = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def idx(tree: Tree, name: str) -> np.ndarray:
    """An IDX file of bytes: 0, 0, 8, the number of dimensions, each as a big-endian 32-bit number, then the data."""
    held = tree.read(name, 1 << 30)
    dimensions = held[3] if held[:3] == b"\0\0\x08" and len(held) > 3 else 0
    start = 4 + 4 * dimensions
    if not dimensions or len(held) < start:
        raise Refused(f"{tree.where(name)}: does not begin like an IDX file of bytes (00 00 08 ..); it is {held[:4]!r}")
    shape = tuple(int(n) for n in np.frombuffer(held[4:start], ">u4"))
    if len(held) - start != math.prod(shape):
        raise Refused(f"{tree.where(name)}: should hold {math.prod(shape)} bytes {shape} and holds {len(held) - start}")
    return np.frombuffer(held, np.uint8, offset=start).reshape(shape)


def part(tree: Tree, name: str) -> np.ndarray:
    """A file by the name of its part; torchvision leaves the gzipped one beside the plain one."""
    found = tree.find(f"*/{name}[-.]ubyte") or tree.find(f"*/{name}[-.]ubyte.gz")
    if len(found) != 1:
        raise Refused(f"{tree.path}: has {len(found)} files {name}-ubyte; give the folder of one data set")
    return idx(tree, found[0])


def images(tree: Tree, name: str) -> np.ndarray:
    held = part(tree, name)
    if held.ndim != 3:
        raise Refused(f"{tree.path}: {name}-ubyte has {held.ndim} dimensions; images have 3")
    return held[:, None]


def bytes_of(tree: Tree, name: str) -> Dataset:
    x, y, test_x, test_y = PARTS
    return Dataset.of(images(tree, x), part(tree, y), images(tree, test_x), part(tree, test_y), classes=10, name=name)


def parquet(tree: Tree, name: str) -> Dataset:
    (x, held), (test_x, test_held) = (hub.images(tree, p, "image", ("label",), mode="L") for p in hub.NEEDS)
    return Dataset.of(x, held["label"], test_x, test_held["label"], classes=10, name=name)


def layouts(name: str) -> tuple[Layout, ...]:
    return (
        Layout("IDX files (train-images-idx3-ubyte.gz, ...)", tuple(f"*/{p}[-.]ubyte*" for p in PARTS),
               partial(bytes_of, name=name)),
        Layout("parquet with image and label", hub.NEEDS, partial(parquet, name=name)),
    )  # fmt: skip


def files(base: str, sums: tuple[str, str, str, str]) -> tuple[File, ...]:
    """md5 of the four, from torchvision/datasets/mnist.py."""
    names = [f"{p}-ubyte.gz" for p in PARTS]
    return tuple(File(name, md5, url=base + name) for name, md5 in zip(names, sums, strict=True))


ENTRIES = (
    Entry(
        name="mnist",
        title="MNIST: handwritten digits",
        samples="60,000 + 10,000 of 1 x 28 x 28, 10 classes",
        licence="CC BY-SA 3.0, as its copies state",
        home="http://yann.lecun.com/exdb/mnist/",
        cite="""\
@article{lecun1998,
  author = {LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, Patrick},
  title = {Gradient-Based Learning Applied to Document Recognition},
  journal = {Proceedings of the IEEE}, volume = {86}, number = {11}, pages = {2278--2324}, year = {1998}
}""",
        files=files("https://ossci-datasets.s3.amazonaws.com/mnist/", (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c")),
        places=("MNIST/raw",),
        hub=("ylecun/mnist", "mnist"),
        layouts=layouts("mnist"),
    ),
    Entry(
        name="fashion_mnist",
        title="Fashion-MNIST: articles of clothing",
        samples="60,000 + 10,000 of 1 x 28 x 28, 10 classes",
        licence="MIT",
        home="https://github.com/zalandoresearch/fashion-mnist",
        cite="""\
@article{xiao2017,
  author = {Xiao, Han and Rasul, Kashif and Vollgraf, Roland},
  title = {Fashion-{MNIST}: a Novel Image Dataset for Benchmarking Machine Learning Algorithms},
  journal = {arXiv:1708.07747}, year = {2017}
}""",
        files=files("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310")),
        places=("FashionMNIST/raw",),
        hub=("zalando-datasets/fashion_mnist", "fashion_mnist"),
        layouts=layouts("fashion_mnist"),
    ),
)  # fmt: skip
