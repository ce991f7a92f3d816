"""STL-10: 96 x 96, binary files; its unlabelled part is not used."""

from __future__ import annotations

import numpy as np

from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.room import room
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

IMAGE = 3 * 96 * 96


def binary(tree: Tree) -> Dataset:
    x, y = part(tree, "train")
    test_x, test_y = part(tree, "test")
    return Dataset.of(x, y, test_x, test_y, classes=10, name="stl10")


def part(tree: Tree, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images lie column by column in the file (its readme), so height and width change places; labels are 1 to 10."""
    images, classes = tree.one(f"*/{name}_X.bin"), tree.one(f"*/{name}_y.bin")
    labels = np.frombuffer(tree.read(classes), np.uint8).astype(np.int64)
    if len(labels) and not 1 <= labels.min() <= labels.max() <= 10:
        raise Refused(f"{tree.where(classes)}: holds labels {labels.min()} to {labels.max()}; they should be 1 to 10")
    count, left = divmod(tree.size(images), IMAGE)
    if left or count != len(labels):
        raise Refused(
            f"{tree.where(images)}: has {tree.size(images)} bytes, which is {tree.size(images) / IMAGE:g} images, and "
            f"there are {len(labels)} labels; is it whole?"
        )
    held = room((count, 3, 96, 96))
    with tree.open(images) as stream:
        for row in range(count):
            pixels = stream.read(IMAGE)
            if len(pixels) != IMAGE:
                raise Refused(f"{tree.where(images)}: ends in image {row} of {count}; get it again")
            held[row] = np.frombuffer(pixels, np.uint8).reshape(3, 96, 96).transpose(0, 2, 1)
    return held, labels - 1


# md5: torchvision/datasets/stl10.py.
ENTRIES = (
    Entry(
        name="stl10",
        title="STL-10: photographs of ten kinds of things",
        samples="5,000 + 8,000 of 3 x 96 x 96, 10 classes",
        licence="ImageNet's terms: research and education only",
        home="https://cs.stanford.edu/~acoates/stl10/",
        cite="""\
@inproceedings{coates2011,
  author = {Coates, Adam and Ng, Andrew and Lee, Honglak},
  title = {An Analysis of Single-Layer Networks in Unsupervised Feature Learning},
  booktitle = {AISTATS}, year = {2011}
}""",
        files=(
            File("stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb", size=2640397119,
                 url="http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"),
            File("train_X.bin", "918c2871b30a85fa023e0c44e0bee87f"),
            File("train_y.bin", "5a34089d4802c674881badbb80307741"),
            File("test_X.bin", "7f263ba9f9e0b06b93213547f721ac82"),
            File("test_y.bin", "36f9794fa4beb8a2c72628de14fa638e"),
        ),
        places=("stl10_binary", "stl10_binary.tar.gz"),
        layouts=(Layout("binary files (train_X.bin, train_y.bin, test_X.bin, test_y.bin)",
                        tuple(f"*/{name}_{what}.bin" for name in ("train", "test") for what in "Xy"), binary),),
    ),
)  # fmt: skip
