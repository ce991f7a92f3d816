"""CIFAR-10-C and CIFAR-100-C: the test images of CIFAR under 15 (+4) corruptions at five severities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from holdfast.data.columns import Column
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.needs import package
from holdfast.data.readers.room import room
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

MAIN = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
SHARE = 0.8  # of the images, in their order, for training: 8,000 of 10,000


def arrays(
    tree: Tree,
    classes: int,
    base: Callable[[], Dataset],
    severity: int = 3,
    extra: bool = False,
    made: bool = False,
    images: int = 50_000,
) -> Dataset:
    """Columns 'corruption' and 'image'; a sample is one image under one corruption.

    By default every published array is cut by image: the first 8,000 images train, the last 2,000 test, the same ones
    under every corruption. With `made`, the training images of CIFAR (the first `images`) are corrupted here by the
    package `imagecorruptions` and all 10,000 published ones test. Its strengths are those of ImageNet-C, which are
    other than those of the published arrays.
    """
    names = MAIN + EXTRA if extra else MAIN
    labels = labels_of(tree, classes)
    count = len(labels)
    cut = 0 if made else round(SHARE * count)
    train = room((len(names) * cut, 3, 32, 32))
    test = room((len(names) * (count - cut), 3, 32, 32))
    for place, name in enumerate(names):
        shown = tree.rows(tree.one(f"*/{name}.npy"), (severity - 1) * count, severity * count, (5 * count, 32, 32, 3))
        shown = shown.transpose(0, 3, 1, 2)
        train[place * cut : (place + 1) * cut] = shown[:cut]
        test[place * (count - cut) : (place + 1) * (count - cut)] = shown[cut:]
    y, trained, tested = labels[:cut], np.arange(cut), np.arange(cut, count)
    numbers = tuple(str(n) for n in range(count))
    if made:
        clean = base()
        many = min(images, len(clean.x))
        train, y = corrupted(clean.x[:many].numpy(), names, severity), clean.y[:many].numpy()
        trained, tested = np.arange(many), np.arange(many, many + count)
        numbers = (*(f"train {n}" for n in range(many)), *numbers)
    columns = {
        "corruption": Column(names, *(np.repeat(np.arange(len(names)), len(part)) for part in (trained, tested))),
        "image": Column(numbers, *(np.tile(part, len(names)) for part in (trained, tested))),
    }
    held = train, np.tile(y, len(names)), test, np.tile(labels[cut:], len(names))
    return Dataset.of(*held, classes=classes, name=f"cifar{classes}c", columns=columns)


def check(severity: Any, extra: Any, made: Any, images: Any) -> None:
    problems: list[str] = []
    if isinstance(severity, bool) or severity not in (1, 2, 3, 4, 5):
        problems.append(f"severity={severity!r} must be a whole number from 1 to 5")
    problems += [
        f"{name}={value!r} must be True or False"
        for name, value in (("extra", extra), ("made", made))
        if not isinstance(value, bool)
    ]
    if isinstance(images, bool) or not isinstance(images, int) or images < 1:
        problems.append(f"images={images!r} must be a whole number of at least 1")
    if problems:
        raise Refused(*problems)


def labels_of(tree: Tree, classes: int) -> np.ndarray:
    """The labels of the images, which the file repeats for every severity."""
    name = tree.one("*/labels.npy")
    held = tree.array(name)
    count = len(held) // 5
    if held.ndim != 1 or not count or len(held) % 5 or any((held[:count] != rest).any() for rest in np.split(held, 5)):
        raise Refused(f"{tree.where(name)}: has shape {held.shape}; it should hold the same labels five times over")
    if held.min() < 0 or held.max() >= classes:
        raise Refused(f"{tree.where(name)}: holds labels {held.min()} to {held.max()}; they should be below {classes}")
    return held[:count].astype(np.int64)


def corrupted(x: np.ndarray, names: tuple[str, ...], severity: int) -> np.ndarray:
    """[types * n, 3, 32, 32]: every image under every type; its noise depends on the type and the image alone."""
    functions = package("imagecorruptions.corruptions", "corruptions")
    image = package("PIL.Image", "data")
    held = room((len(names) * len(x), *x.shape[1:]))
    before = np.random.get_state()  # the package draws from NumPy's global generator
    try:
        for row, (kind, name, number) in enumerate(cells(names, len(x))):
            seed = int(np.random.Philox(key=[kind, number]).random_raw()) % 2**32
            np.random.seed(seed)
            more = {"seed": seed} if name in ("impulse_noise", "glass_blur") else {}  # these two draw elsewhere
            clean = image.fromarray(np.ascontiguousarray(x[number].transpose(1, 2, 0)))
            made = np.asarray(getattr(functions, name)(clean, severity, **more))
            held[row] = made.astype(np.uint8).transpose(2, 0, 1)
    finally:
        np.random.set_state(before)
    return held


def cells(names: tuple[str, ...], count: int) -> Iterator[tuple[int, str, int]]:
    for name in names:
        kind = (MAIN + EXTRA).index(name)
        yield from ((kind, name, number) for number in range(count))


CITE = """\
@inproceedings{hendrycks2019,
  author = {Hendrycks, Dan and Dietterich, Thomas},
  title = {Benchmarking Neural Network Robustness to Common Corruptions and Perturbations},
  booktitle = {ICLR}, year = {2019}
}"""


def entry(classes: int, record: str, md5: str) -> Entry:
    name, archive = f"cifar{classes}c", f"CIFAR-{classes}-C"
    return Entry(
        name=name,
        title=f"{archive}: CIFAR-{classes}'s test images corrupted (columns 'corruption' and 'image')",
        samples=f"15 (+4) corruptions x 5 severities x 10,000 of 3 x 32 x 32, {classes} classes",
        licence="CC BY 4.0",
        home=f"https://zenodo.org/records/{record}",
        cite=CITE,
        files=(File(f"{archive}.tar", md5, url=f"https://zenodo.org/records/{record}/files/{archive}.tar?download=1"),),
        places=(archive, f"{archive}.tar"),
        options={"severity": 3, "extra": False, "made": False, "images": 50_000},
        check=check,
        layouts=(
            Layout(
                "arrays (gaussian_noise.npy, ..., labels.npy)",
                (*(f"*/{kind}.npy" for kind in MAIN), "*/labels.npy"),
                partial(arrays, classes=classes),
                base=f"cifar{classes}",
            ),
        ),
        note="made=True corrupts CIFAR's training images with the package imagecorruptions (strengths of ImageNet-C, "
        "not those of the published arrays; 50,000 images take about ten minutes and 2.3 GB); images=5000 takes fewer",
    )


# md5 as Zenodo lists them.
ENTRIES = (
    entry(10, "2535967", "56bf5dcef84df0e2308c6dcbcbbd8499"),
    entry(100, "3555552", "11f0ed0f1191edbf9fa23466ae6021d3"),
)
