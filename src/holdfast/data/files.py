"""A user's own files as data sets: images in class folders, arrays in an .npz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.readers.pictures import check_options, held_out, is_picture, pictures
from holdfast.data.readers.tree import Tree, tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

TRAIN, TEST = "train", ("test", "val", "valid", "validation")
MODES = {1: "L", 3: "RGB"}


def folder(path: str, test: float = 0.2, image_size: int | None = None, channels: int = 3) -> Dataset:
    """Images in class folders: train/CLASS/image and test/CLASS/image (or val), or CLASS/image with a share held out.

    `path` may be a zip or a tar. Classes are numbered in alphabetical order. The share is taken of every class, always
    the same images. Without `image_size` all images must have one size.
    """
    check_options(image_size, test)
    if channels not in MODES:
        raise Refused(f"channels={channels!r} must be 3 (colour) or 1 (grey)")
    with tree(Path(path).expanduser()) as found:
        parts = sides(found)
        classes = sorted({label for rows in parts.values() for _, label in rows})
        numbers = {label: place for place, label in enumerate(classes)}
        x, y = samples(found, parts["train"], numbers, image_size, MODES[channels])
        if "test" in parts:
            other = samples(found, parts["test"], numbers, image_size, MODES[channels])
            return Dataset.of(x, y, *other, classes=len(classes), name="folder")
    away = held_out(y.tolist(), test)
    return Dataset.of(x[~away], y[~away], x[away], y[away], classes=len(classes), name="folder")


def sides(found: Tree) -> dict[str, list[tuple[str, str]]]:
    """Image and class of each file, for 'train' and, where there is such a folder, 'test'."""
    names = [name for name in found.names if is_picture(name) and "/" in name]
    if not names:
        raise Refused(f"{found.path}: has no images in class folders, such as {found.path}/cat/1.png")
    halves: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        above = name.split("/")[:-1]
        side = next((word for word in above[:-1] if word.lower() in (TRAIN, *TEST)), "")
        key = "" if not side else "train" if side.lower() == TRAIN else "test"
        label = above[above.index(side) + 1] if side else above[-1]
        halves.setdefault(key, []).append((name, label))
    if set(halves) == {""}:
        return {"train": halves[""]}
    if set(halves) != {"train", "test"}:
        have = " and ".join(key or "images outside of train and test" for key in sorted(halves))
        raise Refused(f"{found.path}: has {have}; it needs both train and test (or val), or class folders alone")
    new = {label for _, label in halves["test"]} - {label for _, label in halves["train"]}
    if new:
        raise Refused(f"{found.path}: the classes {', '.join(sorted(new)[:5])} have test images and none to train on")
    return halves


def samples(
    found: Tree, rows: list[tuple[str, str]], numbers: Mapping[str, int], size: int | None, mode: str
) -> tuple[np.ndarray, np.ndarray]:
    labels = np.asarray([numbers[label] for _, label in rows], np.int64)
    return pictures(found, [name for name, _ in rows], size, mode), labels


def npz(path: str, classes: int | None = None) -> Dataset:
    """The arrays x, y, test_x, test_y of an .npz file; or MedMNIST's train_images, train_labels, test_images,
    test_labels. Images may have their channels first or, if they are 1 or 3, last.

    Other rows of ids are columns: `site`, one a training sample, and `test_site`, which may be missing.
    """
    where = Path(path).expanduser()
    with tree(where) as found:
        if not where.is_file():
            raise Refused(f"{where}: is a folder; give the .npz file")
        held = found.arrays(where.name)
    names = ("x", "y", "test_x", "test_y")
    theirs = ("train_images", "train_labels", "test_images", "test_labels")
    keys = next((keys for keys in (names, theirs) if set(keys) <= set(held)), None)
    if keys is None:
        missing = [key for key in names if key not in held]
        raise Refused(
            f"{where}: has no field {', '.join(missing)}; it has {', '.join(held) or 'none'}. It needs "
            f"{', '.join(names)} (or MedMNIST's {', '.join(theirs)})"
        )
    x, y, test_x, test_y = (held[key] for key in keys)
    return Dataset.of(
        first(x), flat(y), first(test_x), flat(test_y), classes=classes, name="npz", columns=ids(held, keys)
    )


def ids(held: Mapping[str, np.ndarray], known: Sequence[str]) -> dict[str, Any]:
    """Columns: what has a `test_` beside it, or is a row of whole numbers or texts as long as the training part."""
    free, many = {key: value for key, value in held.items() if key not in known}, len(held[known[0]])
    pairs = {key: (free[key], free[f"test_{key}"]) for key in free if f"test_{key}" in free}
    left = {key: free[key] for key in free if key not in pairs and key.removeprefix("test_") not in pairs}
    return pairs | {key: value for key, value in left.items() if value.dtype.kind in "iubU" and value.shape == (many,)}


def first(x: np.ndarray) -> np.ndarray:
    """Images with their channels in front: bytes without channels get one."""
    if x.ndim == 3 and x.dtype == np.uint8:
        return x[:, None]
    last = x.ndim == 4 and x.shape[3] in (1, 3) and x.shape[1] not in (1, 3)
    return x.transpose(0, 3, 1, 2) if last else x


def flat(y: np.ndarray) -> np.ndarray:
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


SETS: dict[str, Any] = {"folder": folder, "npz": npz}
