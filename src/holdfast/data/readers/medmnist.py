"""MedMNIST's twelve 2-D sets: NAME.npz with the official training, validation and test parts."""

from __future__ import annotations

from functools import partial

import numpy as np

from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

FIELDS = tuple(f"{part}_{what}" for part in ("train", "val", "test") for what in ("images", "labels"))


def npz(tree: Tree, name: str, classes: int, validation: str = "leave") -> Dataset:
    """`validation='train'` adds the official validation part to the training part; 'leave' leaves it out."""
    where = tree.one(f"*/{name}.npz")
    held = tree.arrays(where, FIELDS)
    parts = {part: samples(held, part, tree.where(where)) for part in ("train", "val", "test")}
    x, y = parts["train"]
    if validation == "train":
        x, y = (np.concatenate([a, b]) for a, b in zip(parts["train"], parts["val"], strict=True))
    return Dataset.of(x, y, *parts["test"], classes=classes, name=name)


def check(validation: object) -> None:
    if validation not in ("leave", "train"):
        raise Refused(f"validation={validation!r} must be 'leave' (left out) or 'train' (added to the training part)")


def samples(held: dict[str, np.ndarray], part: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """[n, c, h, w] and [n]."""
    images, labels = held[f"{part}_images"], held[f"{part}_labels"]
    grey, right = images.ndim == 3, images.ndim == 4 and images.shape[3] == 3
    if images.dtype != np.uint8 or not (grey or right):
        found = f"{images.dtype} {images.shape}"
        raise Refused(f"{where}: {part}_images is {found}; it should be uint8 (n, h, w) or (n, h, w, 3)")
    if labels.ndim != 2 or labels.shape[1] != 1:
        raise Refused(f"{where}: {part}_labels has shape {labels.shape}; it should be (n, 1), one class a sample")
    return images[:, None] if grey else images.transpose(0, 3, 1, 2), labels[:, 0].astype(np.int64)


def chest(tree: Tree, validation: str = "leave") -> Dataset:
    raise Refused(
        f"{tree.path}: chestmnist gives a sample any number of 14 findings; holdfast has no multi-label task. "
        "One finding as two classes: load the file in a function of your own (--data module:function)"
    )


# name: what, classes, training, validation, test, channels, md5 (one a published version); medmnist/info.py of the
# versions 2.1.0 and 3.0.2. The three organ sets were published anew with version 3.
SETS: dict[str, tuple[str, int, int, int, int, int, tuple[str, ...]]] = {
    "pathmnist": ("colon tissue", 9, 89996, 10004, 7180, 3, ("a8b06965200029087d5bd730944a56c1",)),
    "chestmnist": ("chest X-rays", 14, 78468, 11219, 22433, 1, ("02c8a6516a18b556561a56cbdd36c4a8",)),
    "dermamnist": ("skin lesions (from HAM10000)", 7, 7007, 1003, 2005, 3, ("0744692d530f8e62ec473284d019b0c7",)),
    "octmnist": ("retinal OCT", 4, 97477, 10832, 1000, 1, ("c68d92d5b585d8d81f7112f81e2d0842",)),
    "pneumoniamnist": ("chest X-rays", 2, 4708, 524, 624, 1, ("28209eda62fecd6e6a2d98b1501bb15f",)),
    "retinamnist": ("retina photographs", 5, 1080, 120, 400, 3, ("bd4c0672f1bba3e3a89f0e4e876791e4",)),
    "breastmnist": ("breast ultrasound", 2, 546, 78, 156, 1, ("750601b1f35ba3300ea97c75c52ff8f6",)),
    "bloodmnist": ("blood cells", 8, 11959, 1712, 3421, 3, ("7053d0359d879ad8a5505303e11de1dc",)),
    "tissuemnist": ("kidney cells", 8, 165466, 23640, 47280, 1, ("ebe78ee8b05294063de985d821c1c34b",)),
    "organamnist": ("abdominal CT, axial", 11, 34561, 6491, 17778, 1,
                    ("68e3f8846a6bd62f0c9bf841c0d9eacc", "866b832ed4eeba67bfb9edee1d5544e6")),
    "organcmnist": ("abdominal CT, coronal", 11, 12975, 2392, 8216, 1,
                    ("b9ceb9546e10131b32923c5bbeaea2b1", "0afa5834fb105f7705a7d93372119a21")),
    "organsmnist": ("abdominal CT, sagittal", 11, 13932, 2452, 8827, 1,
                    ("9ab87b696fb54e2a387ebe992d6ed5f1", "e5c39f1af030238290b9557d9503af9d")),
}  # fmt: skip
NOTES = {
    "chestmnist": "multi-label: listed and checked, but no run can use it",
    "retinamnist": "its five grades are ordered; they are used as five classes",
}
CITE = """\
@article{yang2023,
  author = {Yang, Jiancheng and Shi, Rui and Wei, Donglai and Liu, Zequan and Zhao, Lin and Ke, Bilian and Pfister, Hanspeter and Ni, Bingbing},
  title = {{MedMNIST} v2 -- A large-scale lightweight benchmark for {2D} and {3D} biomedical image classification},
  journal = {Scientific Data}, volume = {10}, number = {1}, pages = {41}, year = {2023}
}"""  # noqa: E501


def entry(name: str) -> Entry:
    what, classes, train, val, test, channels, sums = SETS[name]
    read = chest if name == "chestmnist" else partial(npz, name=name, classes=classes)
    url = f"https://zenodo.org/records/10519652/files/{name}.npz?download=1"
    return Entry(
        name=name,
        title=f"MedMNIST: {what}",
        samples=f"{train:,} + {test:,} (and {val:,} to validate) of {channels} x 28 x 28, {classes} classes",
        licence="CC BY-NC 4.0" if name == "dermamnist" else "CC BY 4.0",
        home="https://medmnist.com/",
        cite=CITE,
        files=tuple(File(f"{name}.npz", md5, url=url) for md5 in sums),
        places=(f"{name}.npz", f"medmnist/{name}.npz", f"~/.medmnist/{name}.npz"),
        layouts=(Layout(f"{name}.npz", (f"*/{name}.npz",), read),),
        options={"validation": "leave"},
        check=check,
        note=NOTES.get(name, ""),
    )


ENTRIES = tuple(entry(name) for name in SETS)
