"""Data sets: the shipped digits, arrays from outside, what is refused."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from holdfast.data import sets
from holdfast.data.sets import Dataset, digits, load
from holdfast.errors import Refused

FILE = Path(sets.__file__).with_name("digits.npz")


def arrays(n=6, shape=(3, 4, 4), classes=3):
    """A small valid set: x, y, test_x, test_y."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, *shape)).astype(np.float32)
    return x, np.arange(n) % classes, x[:2], np.array([0, classes - 1])


def refused(*args, **kwargs):
    with pytest.raises(Refused) as caught:
        Dataset.of(*args, **kwargs)
    return str(caught.value)


def test_digits_file_is_the_one_that_the_script_makes():
    # sha256 printed by bench/make_digits.py with scikit-learn 1.5.2.
    expected = "39bd8da2e993227831fec36841e36a0b91f645318a0286fb9e75d8e445cfd0da"
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == expected


def test_digits_are_scikit_learns():
    data = digits()
    assert (data.name, data.shape, data.classes) == ("digits", (1, 8, 8), 10)
    assert (len(data.x), len(data.test_x)) == (1437, 360)
    assert data.x.dtype == torch.uint8 and data.y.dtype == torch.int64
    # 561718 is load_digits().data.sum(), the counts are np.bincount(load_digits().target).
    assert int(data.x.sum()) + int(data.test_x.sum()) == 561718
    counts = torch.bincount(torch.cat([data.y, data.test_y])).tolist()
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    # Stratified: 360 / 1797 of each class, to the sample.
    shares = torch.bincount(data.test_y) - torch.tensor(counts) * 360 / 1797
    assert float(shares.abs().max()) < 1


def test_prepare_gives_mean_zero_and_deviation_one():
    data = digits()
    ready = data.prepare(data.x, torch.float64)
    assert ready.dtype == torch.float64 and ready.shape == data.x.shape
    # Constants are kept to nine digits, so zero and one up to 1e-8.
    assert float(ready.mean()) == pytest.approx(0, abs=1e-8)
    assert float(ready.std(correction=0)) == pytest.approx(1, abs=1e-8)


def test_prepare_works_by_channel_by_feature_under_vmap_and_traced():
    x, y, test_x, test_y = arrays()
    images = Dataset.of(x, y, test_x, test_y)
    table = Dataset.of(x.reshape(6, -1), y, test_x.reshape(2, -1), test_y)
    by_hand = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    assert np.allclose(images.prepare(images.x, torch.float32), by_hand, atol=1e-5)
    flat = x.reshape(6, -1)
    assert np.allclose(table.prepare(table.x, torch.float32), (flat - flat.mean(0)) / flat.std(0), atol=1e-4)
    stack = torch.stack([images.x, images.x + 1])
    mapped = torch.func.vmap(lambda rows: images.prepare(rows, torch.float32))(stack)
    assert torch.equal(mapped[0], images.prepare(images.x, torch.float32))
    traced = torch.compile(lambda rows: images.prepare(rows, torch.float32), backend="eager", fullgraph=True)
    assert torch.equal(traced(images.x), mapped[0])


def test_constants_given_or_measured():
    x, y, test_x, test_y = arrays()
    data = Dataset.of(x, y, test_x, test_y, mean=0.5, std=(1, 2, 4))
    assert (data.mean, data.std) == ((0.5,), (1.0, 2.0, 4.0))
    x[:, 1] = 7  # a constant channel must not divide by zero
    constant = Dataset.of(x, y, test_x, test_y)
    assert constant.mean[1] == 7 and constant.std[1] == 1


def test_classes_are_counted_over_both_parts():
    x, y, test_x, _ = arrays()
    assert Dataset.of(x, y, test_x, [0, 8]).classes == 9
    assert Dataset.of(x, y, test_x, [0, 2], classes=5).classes == 5


def test_awkward_arrays_are_taken():
    x, y, test_x, test_y = arrays()
    x.flags.writeable = False
    data = Dataset.of(x[::-1], y.astype(np.float32), torch.from_numpy(test_x), test_y.astype(">i2"))
    assert torch.equal(data.x[0], torch.from_numpy(x[5].copy())) and data.test_y.tolist() == [0, 2]


def test_every_problem_is_told_at_once():
    x, y, _, _ = arrays()
    x[4, 1, 2, 3] = np.nan
    x[5] = np.inf
    message = refused(x, y[:-1], np.zeros((0, 3, 4, 5), np.float32), [0, 9], classes=3, std=0, name="mine")
    assert len(message.splitlines()) == 6
    # 1 NaN and 3 * 4 * 4 infinities.
    assert "mine: x holds NaN or infinite values (49, the first at index [4, 1, 2, 3])" in message
    assert "x has 6 samples but y has 5 labels" in message
    assert (
        "test_x is empty" in message and "test_x has 0 samples but test_y has 2 labels" not in message.splitlines()[0]
    )
    assert "test_y holds labels out of range (1, the first is 9 at index 1): labels are 0 to 2" in message
    assert "std is (0.0,)" in message


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"y": [0, 1, 0.5, 1, 2, 0]}, "y holds labels that are no integers"),
        ({"y": [0, 1, -3, 1, 2, 0]}, "the first is -3 at index 2"),
        ({"y": [[0], [1], [2], [0], [1], [2]]}, "y.reshape(-1)"),
        ({"x": ["a"] * 6}, "cannot be read as an array of numbers"),
        ({"x": np.zeros(6)}, "the first dimension counts samples"),
        ({"x": np.zeros((6, 32, 32, 3), np.float32)}, "channels last"),
        ({"x": np.zeros((6, 3, 4, 4), np.uint8)}, "one scale is needed"),
        ({"x": np.zeros((6, 3, 4, 4), np.complex64)}, "is complex"),
        ({"mean": (1, 2)}, "mean has 2 values for 3 channels"),
        ({"mean": "a"}, "mean is 'a'"),
        ({"classes": 0}, "classes is 0"),
    ],
)
def test_each_problem_is_named(change, part):
    given = dict(zip(("x", "y", "test_x", "test_y"), arrays(), strict=True))
    assert part in refused(**{**given, **change})


def test_load_by_name_and_unknown_names():
    assert load("digits", {}).name == "digits"
    with pytest.raises(Refused, match="unknown data set 'digit': did you mean digits"):
        load("digit", {})
    with pytest.raises(Refused, match="digits has no option 'size'"):
        load("digits", {"size": 3})


MODULE = """
import numpy as np
from holdfast.data.sets import Dataset
x, y = np.zeros((4, 1, 2, 2), np.float32), [0, 1, 0, 1]
def as_tuple(n=4): return x[:n], y[:n], x, y
def as_dict(): return {"x": x, "y": y, "test_x": x, "test_y": y, "classes": 7}
def as_set(): return Dataset.of(x, y, x, y)
def wrong(): return x, y
def odd(): return {"x": x, "y": y, "test_x": x, "z": y}
def fails(): raise OSError("disk gone")
def needs(path): return x, y, x, y
number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "holdfast_test_sets.py").write_text(MODULE)
    (tmp_path / "holdfast_test_broken.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield "holdfast_test_sets"
    sys.modules.pop("holdfast_test_sets", None)
    assert sys.path == path, "the current directory must leave the path again"


def test_load_from_a_module_in_the_current_directory(module):
    assert len(load(f"{module}:as_tuple", {"n": 3}).x) == 3
    assert load(f"{module}:as_tuple", {"n": 3}).name == f"{module}:as_tuple(n=3)"
    assert load(f"{module}:as_dict", {}).classes == 7
    assert load(f"{module}:as_set", {}).name == f"{module}:as_set"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("wrong", "returned an object of type tuple of 2"),
        ("odd", "Dataset.of has no option 'z'"),
        ("fails", "failed: OSError: disk gone"),
        ("needs", "needs the option 'path'"),
        ("as_tupel", "did you mean as_tuple"),
        ("number", "is a int"),
    ],
)
def test_what_goes_wrong_in_a_module_is_told(module, name, part):
    with pytest.raises(Refused) as caught:
        load(f"{module}:{name}", {})
    assert part in str(caught.value)


def test_a_module_that_cannot_be_imported_is_told(module):
    with pytest.raises(Refused, match="importing 'holdfast_test_broken' failed: ZeroDivisionError"):
        load("holdfast_test_broken:f", {})
    with pytest.raises(Refused, match="ModuleNotFoundError"):
        load("holdfast_test_nowhere:f", {})
