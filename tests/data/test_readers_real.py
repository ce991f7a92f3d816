"""The real sets beside the project, through the original layouts and the store, to the published bytes."""

import hashlib

import numpy as np
import originals
import pytest
from shared import cifar, labels, needs_shared, shared, unpacked

from holdfast.data.bring import import_
from holdfast.data.store import opened, problems

pytestmark = needs_shared


def sha256(x):
    """Of the NHWC bytes, as the README of the shared data takes it."""
    held = hashlib.sha256()
    for rows in x.split(5000):
        held.update(rows.permute(0, 2, 3, 1).contiguous().numpy().tobytes())
    return held.hexdigest()


def test_cifar10_from_its_pickles(tmp_path):
    known = labels("cifar10")
    x, test_x = (cifar("cifar10", part).transpose(0, 3, 1, 2) for part in ("train", "test"))
    folder = originals.cifar10(tmp_path / "cifar-10-batches-py", x, known["train_y"], test_x, known["test_y"])
    made = import_(folder, "cifar10", data_dir=tmp_path / "store", checked=False)
    data = opened(made.folder)
    assert (len(data.x), len(data.test_x), data.shape) == (50_000, 10_000, (3, 32, 32))
    # Printed in the shared README's labels file, from the official pixels in the official order.
    assert (sha256(data.x), sha256(data.test_x)) == (str(known["train_sha256"]), str(known["test_sha256"]))
    assert data.y.tolist() == known["train_y"].tolist() and data.test_y.bincount().tolist() == [1000] * 10
    # The constants of models-data-metrics B2: (.491, .482, .447) and (.247, .243, .262), as everyone rounds them.
    assert [round(v / 255, 3) for v in data.mean] == [0.491, 0.482, 0.447]
    assert [round(v / 255, 3) for v in data.std] == [0.247, 0.243, 0.262]
    assert problems(made.folder) == []


def test_cifar100_from_its_pickles(tmp_path):
    known = labels("cifar100")
    x, test_x = (cifar("cifar100", part).transpose(0, 3, 1, 2) for part in ("train", "test"))
    coarse = known["fine_to_coarse"]
    parts = [(images, y, coarse[y]) for images, y in ((x, known["train_y"]), (test_x, known["test_y"]))]
    folder = originals.cifar100(tmp_path / "cifar-100-python", *parts[0], *parts[1])
    data = opened(import_(folder, "cifar100", data_dir=tmp_path / "store", checked=False).folder)
    assert (sha256(data.x), sha256(data.test_x)) == (str(known["train_sha256"]), str(known["test_sha256"]))
    assert data.y.bincount().tolist() == [500] * 100 and data.test_y.bincount().tolist() == [100] * 100
    column = data.columns["coarse"]
    assert np.array_equal(column.train, coarse[known["train_y"]])
    # models-data-metrics B2: CIFAR-100 mean (.50707516, .48654887, .44091784), std (.26733429, .25643846, .27615047).
    assert [v / 255 for v in data.mean] == pytest.approx([0.50707516, 0.48654887, 0.44091784], abs=1e-7)
    assert [v / 255 for v in data.std] == pytest.approx([0.26733429, 0.25643846, 0.27615047], abs=1e-7)


def test_pacs_from_its_zip(tmp_path):
    data = opened(import_(shared("pacs_64.zip"), "pacs", data_dir=tmp_path).folder)
    column = data.columns["domain"]
    counts = np.bincount(column.train) + np.bincount(column.test)
    # models-data-metrics B1: 1,670 photo, 2,048 art, 2,344 cartoon, 3,929 sketch.
    assert dict(zip(column.names, counts.tolist(), strict=True)) == {
        "art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929,
    }  # fmt: skip
    assert data.shape == (3, 64, 64) and len(data.test_x) / 9991 == pytest.approx(0.2, abs=0.002)
    for place in range(4):
        share = np.bincount(data.test_y[column.test == place], minlength=7) / np.bincount(data.y[column.train == place])
        assert share == pytest.approx([0.25] * 7, abs=0.02)  # a fifth of each class: one to four


def test_bloodmnist_sample_as_npz(tmp_path):
    held = unpacked("bloodmnist_sample")
    cuts = {"train": slice(0, 5000), "val": slice(5000, 6000), "test": slice(6000, None)}
    arrays = {f"{part}_images": held["x"][rows] for part, rows in cuts.items()}
    arrays |= {f"{part}_labels": held["y"][rows, None] for part, rows in cuts.items()}
    np.savez_compressed(tmp_path / "bloodmnist.npz", allow_pickle=False, **arrays)
    data = opened(import_(tmp_path / "bloodmnist.npz", data_dir=tmp_path / "s", checked=False).folder)
    assert (data.classes, len(data.x), len(data.test_x)) == (8, 5000, 1557)
    assert sha256(data.x) == hashlib.sha256(held["x"][:5000].tobytes()).hexdigest()
    assert np.array_equal(data.test_y, held["y"][6000:])


def test_mnist_from_its_idx_files(tmp_path):
    held = unpacked("mnist_with_writers")
    arrays = [held[f"{part}_{what}"] for part in ("train", "test") for what in ("x", "y")]
    folder = originals.mnist(tmp_path / "raw", *arrays, ending="")
    data = opened(import_(folder, "mnist", data_dir=tmp_path / "s").folder)
    assert np.array_equal(data.x[:, 0], arrays[0]) and np.array_equal(data.test_y, arrays[3])
    # Known of MNIST: mean 0.1307 and deviation 0.3081 of the training pixels.
    assert (round(data.mean[0] / 255, 4), round(data.std[0] / 255, 4)) == (0.1307, 0.3081)
