"""FEMNIST: handwritten digits and letters by writer, in LEAF's form and in that of TensorFlow Federated.

Both store white paper as 1 and ink as 0, and both code bases of the papers turn that round: FedEve's takes 1 - value,
wenzhu23333's (0.5 - value) / 0.5 (models-data-metrics B1, B2). So the data set has black paper, 255 is ink, and the
constants of normalisation by name fit; `paper='white'` leaves the bytes as they are stored.

Memory: LEAF's 805,263 images are 632 MB, memory-mapped; while they are read about twice that, and the numbers of one
file (some 700 MB).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.hub import TRAIN
from holdfast.data.readers.leaf import (
    CITE,
    SPLIT,
    WHOLE,
    User,
    check_split_already,
    gathered,
    labels,
    parted,
    share_problems,
    split_files,
    tabled,
    users,
    whole_files,
)  # fmt: skip
from holdfast.data.readers.needs import package
from holdfast.data.readers.pictures import decoded
from holdfast.data.readers.stack import Rows, both
from holdfast.data.readers.tree import Tree, told
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

CLASSES, SIDE = 62, 28
OPTIONS = {"paper": "black", "share": 0.9, "seed": 0}
TFF = ("*/fed_emnist_train.h5", "*/fed_emnist_test.h5")


def leaf_split(tree: Tree, paper: str, share: float, seed: int) -> Dataset:
    """LEAF's train/ and test/, as it split them."""
    check_split_already(tree, {"share": share, "seed": seed}, OPTIONS)
    train, test = (gathered(users(tree, names), images) for names in split_files(tree))
    return made(train, test, paper)


def leaf_whole(tree: Tree, paper: str, share: float, seed: int) -> Dataset:
    """LEAF's all_data/, split here within writers."""
    return made(*parted(gathered(users(tree, whole_files(tree)), images), share, seed), paper)


def parquet(tree: Tree, paper: str, share: float, seed: int) -> Dataset:
    """Flower's copy of LEAF's set, split here within writers."""
    return made(*parted(gathered(tabled(tree, "writer_id", "image", "character"), drawn), share, seed), paper)


def tff(tree: Tree, paper: str, share: float, seed: int) -> Dataset:
    """TFF's two HDF5 files: examples/WRITER/pixels [n, 28, 28] in 0 to 1 and examples/WRITER/label [n]."""
    check_split_already(tree, {"share": share, "seed": seed}, OPTIONS)
    train, test = (list(writers(tree, tree.one(pattern))) for pattern in TFF)
    return made(train, test, paper)


def check(paper: object, share: object, seed: object) -> None:
    problems = share_problems(share, seed)
    if paper not in ("white", "black"):
        problems.append(f"paper={paper!r} is neither 'white' (as stored) nor 'black' (1 - value, as the papers' codes)")
    if problems:
        raise Refused(*problems)


def made(train: list[Rows], test: list[Rows], paper: str) -> Dataset:
    a, b, column = both(train, test)
    if paper == "black":  # in place: these arrays may be files
        for part in (a, b):
            np.subtract(255, part.x, out=part.x)
    return Dataset.of(a.x, a.y, b.x, b.y, classes=CLASSES, name="femnist", columns={"writer": column})


def images(user: User) -> Rows:
    """One writer's lists of 784 numbers as bytes."""
    wrong = {len(row) if isinstance(row, list) else -1 for row in user.x} - {SIDE * SIDE}
    if wrong:
        many = sorted(wrong)[0]
        what = f"of {many} numbers" if many >= 0 else "that is no list of numbers"
        raise Refused(f"{user.where}: has an image {what}; LEAF's FEMNIST has {SIDE * SIDE} numbers an image")
    try:
        values = np.asarray(user.x, np.float64)
    except (TypeError, ValueError):
        raise Refused(f"{user.where}: has pixels that are no numbers") from None
    return Rows(user.name, as_bytes(values, user.where).reshape(-1, 1, SIDE, SIDE), labels(user, CLASSES))


def drawn(user: User) -> Rows:
    """One writer's PNG files as bytes."""
    wrong = [x for x in user.x if not isinstance(x, Mapping) or not isinstance(x.get("bytes"), bytes)]
    if wrong:
        raise Refused(f"{user.where}: its image {told(wrong[0])} holds no bytes of an image")
    pictures = [decoded(x["bytes"], user.where, None, "L") for x in user.x]
    other = {picture.shape for picture in pictures} - {(1, SIDE, SIDE)}
    if other:
        raise Refused(f"{user.where}: has an image of shape {other.pop()}; LEAF's are 1 x {SIDE} x {SIDE}")
    return Rows(user.name, np.stack(pictures), labels(user, CLASSES))


def as_bytes(values: np.ndarray, where: str) -> np.ndarray:
    """Numbers v / 255 -> v."""
    with np.errstate(invalid="ignore"):
        scaled = values * 255
        whole = np.rint(scaled)
        bad = ~((np.abs(scaled - whole) < 0.01) & (whole >= 0) & (whole <= 255))
    if bad.any():
        raise Refused(
            f"{where}: has the pixel {values[bad][0]!r}, which is none of 0/255, 1/255, ..., 255/255 ({bad.sum()} such)"
        )
    return whole.astype(np.uint8)


def writers(tree: Tree, name: str) -> Iterator[Rows]:
    where, h5py = tree.where(name), package("h5py", "data")
    path = Path(tree.path) / name
    try:
        with h5py.File(path if path.is_file() else io.BytesIO(tree.read(name)), "r") as file:
            examples = member(where, file, ("examples",))[0]
            for writer in examples:
                of = f"{where}, writer {writer}"
                yield writer_of(of, writer, member(of, examples[writer], ("pixels", "label")))
    except Refused:
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{where}: is no whole HDF5 file of this form ({error}); get it again") from None


def member(where: str, held: Any, fields: tuple[str, ...]) -> list[Any]:
    known = list(held) if hasattr(held, "keys") else []
    missing = [key for key in fields if key not in known]
    if missing:
        raise Refused(
            f"{where}: has no field {' and no field '.join(missing)}; it has {', '.join(known[:5]) or 'none'}"
        )
    return [held[key] for key in fields]


def writer_of(where: str, writer: str, held: list[Any]) -> Rows:
    pixels, label = (array[:] for array in held)
    if pixels.shape != (len(label), SIDE, SIDE):
        raise Refused(
            f"{where}: has pixels of shape {pixels.shape} and {len(label)} labels; {SIDE} x {SIDE} each are expected"
        )
    if not np.issubdtype(label.dtype, np.integer) or (len(label) and not 0 <= label.min() <= label.max() < CLASSES):
        raise Refused(f"{where}: has labels that are none of 0 to {CLASSES - 1}")
    return Rows(writer, as_bytes(pixels.astype(np.float64), where)[:, None], label.astype(np.int64))


ENTRIES = (
    Entry(
        name="femnist",
        title="handwritten digits and letters by writer",
        samples="LEAF: 805,263 images of 3,550 writers; TFF: 671,585 + 77,483 of 3,400; 1 x 28 x 28, 62 classes",
        licence="LEAF's code is BSD-2; the images are NIST Special Database 19, in the public domain",
        home="https://leaf.cmu.edu",
        cite=CITE,
        layouts=(
            Layout("LEAF json, split (data/train, data/test)", SPLIT, leaf_split),
            Layout("TFF's HDF5 (fed_emnist_train.h5, fed_emnist_test.h5)", TFF, tff),
            Layout("LEAF json, whole (data/all_data)", WHOLE, leaf_whole),
            Layout("parquet with image, writer_id and character (flwrlabs/femnist)", (TRAIN,), parquet),
        ),
        files=(
            File(
                "fed_emnist.tar.bz2",
                sha256="fe1ed5a502cea3a952eb105920bff8cffb32836b5173cb18a57a32c3606f3ea0",  # TFF's emnist.py
                url="https://storage.googleapis.com/tff-datasets-public/fed_emnist.tar.bz2",
            ),
        ),
        places=("femnist", "FEMNIST", "leaf/data/femnist/data", "fed_emnist.tar.bz2"),
        hub=("flwrlabs/femnist",),
        options=OPTIONS,
        check=check,
        how=(
            "LEAF's form: git clone https://github.com/TalwalkarLab/leaf, then in data/femnist "
            "./preprocess.sh -s niid --sf 1.0 -k 0 -t sample, and import data/femnist/data"
        ),
        note=(
            "the two forms are different sets of images; pixels are 1 - value (255 is ink), paper='white' leaves them "
            "as stored; a whole LEAF set is split within writers by share=0.9, seed=0"
        ),
    ),
)
