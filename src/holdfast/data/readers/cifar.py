"""CIFAR-10 and CIFAR-100: python pickles, binary records, parquet."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from holdfast.data.columns import Column
from holdfast.data.readers import hub
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.tree import Tree, told
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

PIXELS = 3 * 32 * 32
BATCHES = tuple(f"data_batch_{k}" for k in range(1, 6))
# The 20 superclasses in the order of `meta` of the archive.
COARSE = (
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables", "household_electrical_devices",
    "household_furniture", "insects", "large_carnivores", "large_man-made_outdoor_things",
    "large_natural_outdoor_scenes", "large_omnivores_and_herbivores", "medium_mammals", "non-insect_invertebrates",
    "people", "reptiles", "small_mammals", "trees", "vehicles_1", "vehicles_2",
)  # fmt: skip


def _latin(text: Any, encoding: Any = "latin1") -> bytes:
    """What Python 3 writes for bytes in its old pickles; no other codec is run."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError(f"the codec {told(encoding)}")
    return text.encode("latin1")


class _Numbers(pickle.Unpickler):
    """Reads arrays, bytes, text, numbers, lists and dicts. A pickle that names anything else is refused unread."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np.empty(0).__reduce__()[0]  # that function, wherever this NumPy keeps it
        if name == "_frombuffer" and module in ("numpy.core.numeric", "numpy._core.numeric"):
            return np.empty(1).__reduce_ex__(5)[0]  # the same for protocol 5
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):
            return _latin
        raise pickle.UnpicklingError(f"it wants {module}.{name}, which no array needs")


def unpickled(tree: Tree, name: str) -> dict[str, Any]:
    """The dict of a batch, keys as text."""
    try:
        held = _Numbers(io.BytesIO(tree.read(name, 1 << 30)), encoding="bytes").load()
    except Refused:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        reason = str(error) or type(error).__name__
        raise Refused(f"{tree.where(name)}: is no pickle of plain arrays and was not read ({reason})") from None
    if not isinstance(held, dict):
        raise Refused(f"{tree.where(name)}: holds a {type(held).__name__}; a batch is a dict with data and labels")
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): value for key, value in held.items()}


def batch(tree: Tree, name: str, fields: Sequence[str]) -> dict[str, np.ndarray]:
    """The pixels [n, 3, 32, 32] and the label fields of one batch."""
    held = unpickled(tree, name)
    missing = [key for key in ("data", *fields) if key not in held]
    if missing:
        raise Refused(f"{tree.where(name)}: has no field {', '.join(missing)}; it has {', '.join(sorted(held))}")
    data = held["data"]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != PIXELS:
        shape = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise Refused(f"{tree.where(name)}: its data is {shape}; it should be uint8 (n, {PIXELS})")
    rows = {key: labels_of(tree, name, key, held[key], len(data)) for key in fields}
    return {"data": data.reshape(-1, 3, 32, 32), **rows}


def labels_of(tree: Tree, name: str, key: str, value: Any, count: int) -> np.ndarray:
    if not isinstance(value, list) or not all(isinstance(label, int) for label in value):
        raise Refused(f"{tree.where(name)}: its {key} are {told(value)}; they should be a list of whole numbers")
    if len(value) != count:
        raise Refused(f"{tree.where(name)}: has {count} images and {len(value)} {key}; is it whole?")
    return np.asarray(value, np.int64)


def joined(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def cifar10(train: Mapping[str, np.ndarray], test: Mapping[str, np.ndarray]) -> Dataset:
    return Dataset.of(train["data"], train["labels"], test["data"], test["labels"], classes=10, name="cifar10")


def cifar100(train: Mapping[str, np.ndarray], test: Mapping[str, np.ndarray]) -> Dataset:
    columns = {"coarse": Column(COARSE, train["coarse_labels"], test["coarse_labels"])}
    arrays = train["data"], train["fine_labels"], test["data"], test["fine_labels"]
    return Dataset.of(*arrays, classes=100, name="cifar100", columns=columns)


def pickles10(tree: Tree) -> Dataset:
    train = joined([batch(tree, tree.one(f"*/{name}"), ("labels",)) for name in BATCHES])
    return cifar10(train, batch(tree, tree.one("*/test_batch"), ("labels",)))


def pickles100(tree: Tree) -> Dataset:
    fields = ("fine_labels", "coarse_labels")
    return cifar100(*(batch(tree, tree.one(f"*/{part}"), fields) for part in ("train", "test")))


def binary(tree: Tree, name: str, fields: Sequence[str]) -> dict[str, np.ndarray]:
    """Records of one byte a label and then the pixels."""
    held = np.frombuffer(tree.read(name), np.uint8)
    record = len(fields) + PIXELS
    if not len(held) or len(held) % record:
        raise Refused(f"{tree.where(name)}: has {len(held)} bytes, no multiple of {record}; is it whole?")
    rows = held.reshape(-1, record)
    labels = {key: rows[:, place].astype(np.int64) for place, key in enumerate(fields)}
    return {"data": rows[:, len(fields) :].reshape(-1, 3, 32, 32), **labels}


def binary10(tree: Tree) -> Dataset:
    train = joined([binary(tree, tree.one(f"*/{name}.bin"), ("labels",)) for name in BATCHES])
    return cifar10(train, binary(tree, tree.one("*/test_batch.bin"), ("labels",)))


def binary100(tree: Tree) -> Dataset:
    fields = ("coarse_labels", "fine_labels")
    return cifar100(*(binary(tree, tree.one(f"*/{part}.bin"), fields) for part in ("train", "test")))


def table(tree: Tree, part: str, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    pixels, held = hub.images(tree, part, "img", tuple(names))
    return {"data": pixels, **{names[key]: np.asarray(values, np.int64) for key, values in held.items()}}


def parquet10(tree: Tree) -> Dataset:
    return cifar10(*(table(tree, part, {"label": "labels"}) for part in hub.NEEDS))


def parquet100(tree: Tree) -> Dataset:
    names = {"fine_label": "fine_labels", "coarse_label": "coarse_labels"}
    return cifar100(*(table(tree, part, names) for part in hub.NEEDS))


CITE = """\
@techreport{krizhevsky2009,
  author = {Krizhevsky, Alex},
  title = {Learning Multiple Layers of Features from Tiny Images},
  institution = {University of Toronto}, year = {2009}
}"""
HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
# md5: torchvision/datasets/cifar.py and Krizhevsky's page.
FILES10 = (
    File("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", size=170498071,
         url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"),
    File("data_batch_1", "c99cafc152244af753f735de768cd75f"),
    File("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
    File("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
    File("data_batch_4", "634d18415352ddfa80567beed471001a"),
    File("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    File("test_batch", "40351d587109b95175f43aff81a1287e"),
    File("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
)  # fmt: skip
FILES100 = (
    File("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", size=169001437,
         url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"),
    File("train", "16019d7e3df5f24257cddd939b257f8d"),
    File("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    File("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", size=168513733),
)  # fmt: skip
_entry = partial(Entry, licence="none stated", home=HOME, cite=CITE)

ENTRIES = (
    _entry(
        name="cifar10",
        title="CIFAR-10: small photographs of ten kinds of things",
        samples="50,000 + 10,000 of 3 x 32 x 32, 10 classes",
        files=FILES10,
        places=("cifar-10-batches-py", "cifar-10-python.tar.gz", "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
        hub=("uoft-cs/cifar10", "cifar10"),
        layouts=(
            Layout("python pickles (data_batch_1 to 5, test_batch)",
                   (*(f"*/{name}" for name in BATCHES), "*/test_batch"), pickles10),
            Layout("binary records (data_batch_1.bin to 5, test_batch.bin)",
                   (*(f"*/{name}.bin" for name in BATCHES), "*/test_batch.bin"), binary10),
            Layout("parquet with img and label", hub.NEEDS, parquet10),
        ),
    ),
    _entry(
        name="cifar100",
        title="CIFAR-100: small photographs of a hundred kinds of things in twenty groups (column 'coarse')",
        samples="50,000 + 10,000 of 3 x 32 x 32, 100 classes",
        files=FILES100,
        places=("cifar-100-python", "cifar-100-python.tar.gz", "cifar-100-binary", "cifar-100-binary.tar.gz"),
        hub=("uoft-cs/cifar100", "cifar100"),
        layouts=(
            Layout("python pickles (train, test, meta)", ("*/train", "*/test", "*/meta"), pickles100),
            Layout("binary records (train.bin, test.bin)", ("*/train.bin", "*/test.bin"), binary100),
            Layout("parquet with img, fine_label and coarse_label", hub.NEEDS, parquet100),
        ),
    ),
)  # fmt: skip
