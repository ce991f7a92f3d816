"""MNIST with writers from MNIST's idx files and QMNIST's labels: small ones made here, and the real images."""

import numpy as np
import pytest
from loaded import digest, idx_file, loaded, refused
from shared import needs_shared, unpacked

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "qmnist-train-labels-idx2-int")
TESTS = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "qmnist-test-labels-idx2-int")


def known(y, hsf, writer):
    """QMNIST's eight numbers a digit."""
    rows = np.zeros((len(y), 8), np.int32)
    rows[:, 0], rows[:, 1], rows[:, 2] = y, hsf, writer
    return rows


def small(folder, ending=""):
    rng = np.random.default_rng(0)
    x, y = rng.integers(256, size=(9, 28, 28), dtype=np.uint8), (np.arange(9) % 10).astype(np.uint8)
    parts = (x, y, known(y, [0, 4] * 4 + [0], [30, 7, 7, 30, 500, 7, 7, 7, 7]))
    tests = (x[:2], y[:2], known([0, 1, 5], [4, 4, 1], [900, 30, 1]))  # QMNIST's tests go on where MNIST's end
    folder.mkdir(exist_ok=True)
    for name, array in zip((*NAMES, *TESTS), (*parts, *tests), strict=True):
        idx_file(folder / f"{name}{ending}", array)
    return x, y


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_writers_come_from_qmnists_third_number(tmp_path, ending):
    x, y = small(tmp_path, ending)
    data = loaded("mnist_writers", tmp_path)
    assert np.array_equal(data.x[:, 0].numpy(), x) and data.y.tolist() == y.tolist() and data.classes == 10
    assert data.columns["writer"].names == ("7", "30", "500", "900")
    assert data.columns["writer"].train.tolist() == [1, 0, 0, 1, 2, 0, 0, 0, 0]
    assert data.columns["writer"].test.tolist() == [3, 1] and data.test_y.tolist() == [0, 1]
    assert data.columns["hsf"].names == ("hsf_0", "hsf_4")


def test_both_forms_of_a_file_are_no_problem(tmp_path):
    small(tmp_path)
    small(tmp_path, ".gz")
    assert len(loaded("mnist_writers", tmp_path).x) == 9


@needs_shared
def test_the_real_set(tmp_path):
    held = unpacked("mnist_with_writers")
    for names, part in ((NAMES, "train"), (TESTS, "test")):
        x, y = held[f"{part}_x"], held[f"{part}_y"]
        table = known(y, held[f"{part}_hsf"], held[f"{part}_writer"])
        for name, array in zip(names, (x, y, table), strict=True):
            idx_file(tmp_path / name, array)
    data = loaded("mnist_writers", tmp_path)
    writer = data.columns["writer"]
    # ../shared/data/README.md: 539 writers to train, 297 to test; the images are exact.
    assert (len(np.unique(writer.train)), len(np.unique(writer.test)), len(writer.names)) == (539, 297, 836)
    assert [int(writer.names[i]) for i in writer.test] == held["test_writer"].tolist()
    # The class counts of MNIST's training set, as published.
    assert np.bincount(data.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert digest(data.x) == digest(held["train_x"])


def test_what_is_wrong_is_told(tmp_path):
    small(tmp_path)
    path = tmp_path / "qmnist-train-labels-idx2-int"
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert "idx2-int: has 285 bytes of labels where its header promises 288" in refused("mnist_writers", tmp_path)
    path.write_bytes(whole[:9])
    assert "idx2-int: does not begin as 8 32-bit labels" in refused("mnist_writers", tmp_path)
    path.write_bytes(b"PK" + whole[2:])
    assert "does not begin as 8 32-bit labels" in refused("mnist_writers", tmp_path)
    y = (np.arange(9) % 10).astype(np.uint8)
    idx_file(path, known(y[::-1], 0, 1))
    assert "gives 8 of 9 digits another class than MNIST's train labels" in refused("mnist_writers", tmp_path)
    idx_file(path, known(y[:5], 0, 1))
    assert "has 5 rows for the 9 images" in refused("mnist_writers", tmp_path)
    idx_file(path, known(y, 0, 1)[:, :5].copy())
    assert "does not begin as 8 32-bit labels" in refused("mnist_writers", tmp_path)
    path.write_bytes(whole)
    idx_file(tmp_path / NAMES[1], np.full(9, 10, np.uint8))
    assert "another class" in refused("mnist_writers", tmp_path)
    small(tmp_path, ".gz")
    cut = tmp_path / f"{NAMES[0]}.gz"
    cut.write_bytes(cut.read_bytes()[:-2000])
    (tmp_path / NAMES[0]).unlink()
    assert "train-images-idx3-ubyte.gz: is cut short or damaged" in refused("mnist_writers", tmp_path)
