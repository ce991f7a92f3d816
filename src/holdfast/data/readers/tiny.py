"""Tiny-ImageNet: 200 classes of 64 x 64; the labelled validation part is the test set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.data.readers import hub
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.pictures import is_picture, pictures
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

CLASSES = 200


def folders(tree: Tree) -> Dataset:
    """Classes in the order of their WordNet ids, as an ImageFolder has them; grey images become RGB."""
    train = [name for name in tree.find("*/train/*/*") if is_picture(name)]
    ids = [after(name, "train") for name in train]
    classes = sorted(set(ids))
    test = [name for name in tree.find("*/val/*") if is_picture(name)]
    known = listed(tree)
    test_ids = [known.get(name.rsplit("/", 1)[-1], "") if known else after(name, "val") for name in test]
    wrong = [(name, found) for name, found in zip(test, test_ids, strict=True) if found not in classes]
    if wrong:
        name, found = wrong[0]
        said = f"the class {found!r}, which train/ has not" if found else "no line in val_annotations.txt"
        raise Refused(f"{tree.where(name)}: has {said} ({len(wrong)} such images)")
    numbers = {found: place for place, found in enumerate(classes)}
    x, test_x = pictures(tree, train), pictures(tree, test)
    y, test_y = (np.asarray([numbers[found] for found in part], np.int64) for part in (ids, test_ids))
    return Dataset.of(x, y, test_x, test_y, classes=len(classes), name="tiny_imagenet")


def after(name: str, folder: str) -> str:
    """The folder below `folder`."""
    parts = name.split("/")
    return parts[parts.index(folder) + 1]


def listed(tree: Tree) -> dict[str, str]:
    """File name -> WordNet id; empty where the validation images lie in class folders already."""
    if not tree.has("*/val/val_annotations.txt"):
        return {}
    name = tree.one("*/val/val_annotations.txt")
    lines = [line.split("\t") for line in tree.text(name).splitlines() if line.strip()]
    short = [number for number, line in enumerate(lines, 1) if len(line) < 2]
    if short:
        raise Refused(f"{tree.where(name)} line {short[0]}: should hold a file, its class and a box, parted by tabs")
    return {line[0]: line[1] for line in lines}


def parquet(tree: Tree) -> Dataset:
    """As zh-plus/tiny-imagenet has it; its numbers of the classes are taken as they are."""
    parts: Sequence[str] = (hub.TRAIN, hub.VALID)
    (x, held), (test_x, test_held) = (hub.images(tree, part, "image", ("label",)) for part in parts)
    return Dataset.of(x, held["label"], test_x, test_held["label"], classes=CLASSES, name="tiny_imagenet")


ENTRIES = (
    Entry(
        name="tiny_imagenet",
        title="Tiny-ImageNet: a part of ImageNet, made small",
        samples="100,000 + 10,000 (the labelled validation part) of 3 x 64 x 64, 200 classes",
        licence="ImageNet's terms: research and education only",
        home="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        cite="""\
@techreport{le2015,
  author = {Le, Ya and Yang, Xuan},
  title = {Tiny {ImageNet} Visual Recognition Challenge},
  institution = {Stanford University, CS 231N}, year = {2015}
}""",
        files=(
            File("tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de", size=248100043,
                 url="http://cs231n.stanford.edu/tiny-imagenet-200.zip"),
        ),
        places=("tiny-imagenet-200", "tiny-imagenet-200.zip", "TinyImageNet"),
        hub=("zh-plus/tiny-imagenet",),
        layouts=(
            Layout("folders (train/ID/images, val/images, val/val_annotations.txt)",
                   ("*/train/*/*.JPEG", "*/val/*.JPEG"), folders),
            Layout("parquet with image and label", (hub.TRAIN, hub.VALID), parquet),
        ),
        note="import it once: 110,000 images are decoded in a minute or two, then memory-mapped",
    ),
)  # fmt: skip
