"""A user's own ids of samples: from a callable, from an .npz, as a Column; and what is said of those that are none."""

import sys

import numpy as np
import pytest
import torch

import holdfast
from holdfast.data.sets import Column, Dataset, load
from holdfast.errors import Refused

X, Y = np.zeros((6, 4), np.float32), np.array([0, 1, 0, 1, 0, 1])
TEST = X[:3], Y[:3]
SITES = ["oslo", "rome", "oslo", "rome", "bern", "bern"]


def columns(value, name="site"):
    return Dataset.of(X, Y, *TEST, columns={name: value}).columns


@pytest.mark.parametrize(
    ("given", "names", "train"),
    [
        (SITES, ("bern", "oslo", "rome"), [1, 2, 1, 2, 0, 0]),
        (np.array(SITES), ("bern", "oslo", "rome"), [1, 2, 1, 2, 0, 0]),
        (np.array(SITES, dtype=object), ("bern", "oslo", "rome"), [1, 2, 1, 2, 0, 0]),
        ([10, 9, 9, 10, 2, 2], ("2", "9", "10"), [2, 1, 1, 2, 0, 0]),  # numbers in their order, not that of texts
        (torch.tensor([7, 7, 7, 3, 3, 3]), ("3", "7"), [1, 1, 1, 0, 0, 0]),
    ],
)
def test_ids_of_the_training_samples(given, names, train):
    column = columns(given)["site"]
    assert (column.names, column.train.tolist(), len(column.test)) == (names, train, 0)
    assert column.train.dtype == np.int64


def test_ids_of_both_parts_share_their_names():
    column = columns((SITES, ["rome", "paris", "bern"]))["site"]
    assert column.names == ("bern", "oslo", "paris", "rome")
    assert (column.train.tolist(), column.test.tolist()) == ([1, 3, 1, 3, 0, 0], [3, 2, 0])


def test_a_column_is_exported_and_taken_as_it_is():
    column = holdfast.Column(("a", "b"), np.array([0, 1, 0, 1, 0, 1], np.uint8), np.array([]))
    assert holdfast.Column is Column and "Column" in holdfast.__all__
    assert columns(column)["site"].train.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (SITES[:5], "column 'site' has 5 train values for 6 samples: give one each"),
        ((SITES, SITES), "column 'site' has 6 test values for 3 samples: give one each"),
        (np.arange(6) / 2, "column 'site' is a ndarray of float64 and shape (6,), and ids are whole numbers or texts"),
        (np.zeros((6, 2), int), "column 'site' is a ndarray of int64 and shape (6, 2), and ids are whole numbers"),
        ("oslo", "column 'site' is a str of <U4 and shape (), and ids"),
        (None, "column 'site' is a NoneType of object and shape (), and ids are whole numbers or texts: give one id a"),
        ([1, "a", None, 1, 1, 1], "column 'site' is a list of object"),
        ({"train": SITES}, "column 'site' is a dict of object"),
        ((SITES, [1, 2, 3]), "column 'site' has text in one part and numbers in the other"),
        (Column(("a",), np.array([0, 0, 0, 0, 0, 1]), np.array([])), "has train values outside 0 to 0, its 1 names"),
        (Column(("a",), np.array(SITES), np.array([])), "has positions that are no row of whole numbers: train <U4"),
    ],
)
def test_what_is_no_column_is_refused_in_words(given, part):
    with pytest.raises(Refused) as caught:
        columns(given)
    assert part in str(caught.value)


def test_what_is_no_dict_of_columns_is_refused_and_all_problems_are_told_at_once():
    with pytest.raises(Refused, match="columns is a list: give a dict such as"):
        Dataset.of(X, Y, *TEST, columns=[SITES])  # type: ignore[arg-type]
    with pytest.raises(Refused) as caught:
        Dataset.of(X, Y, *TEST, columns={"a": None, "b": 1.5, 3: SITES})  # type: ignore[dict-item]
    assert len(caught.value.problems) == 3 and "column 3 needs a name, as text" in str(caught.value)


def test_a_callable_with_a_column_of_its_own_runs(tmp_path, monkeypatch):
    """An AttributeError of check.py, formerly."""
    (tmp_path / "owndata.py").write_text(
        "import numpy as np\n\n\ndef made(pair=False):\n"
        "    x, y = np.eye(8, dtype=np.float32), np.arange(8) % 2\n"
        "    site = np.repeat(['oslo', 'rome'], 4)\n"
        "    return dict(x=x, y=y, test_x=x, test_y=y, columns={'site': (site, site) if pair else site})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "owndata", raising=False)
    for data in ("owndata:made", "owndata:made(pair=True)"):
        result = holdfast.run(
            data=data, split="natural(by='site')", model="logreg", rounds=1, cohort=2, batch=2, epochs=1
        )
        assert result.metrics[0]["clients"] == 2 and "client_accuracy" in result.metrics[0]


def test_an_npz_with_ids_is_split_by_them(tmp_path):
    arrays = {"x": X, "y": Y, "test_x": TEST[0], "test_y": TEST[1]}
    site, day = np.array(SITES), np.array([1, 1, 2, 2, 3, 3])
    np.savez(tmp_path / "a.npz", **arrays, site=site, test_site=site[:3], day=day, mean=np.zeros(4), weight=X[:, 0])
    held = load("npz", {"path": str(tmp_path / "a.npz")}).columns
    assert set(held) == {"site", "day"}, "numbers that are no ids are left alone"
    assert held["site"].test.tolist() == [1, 2, 1] and held["day"].names == ("1", "2", "3")
    result = holdfast.run(
        data=f"npz(path='{tmp_path}/a.npz')", split="natural(by='site')", model="logreg", rounds=1, cohort=3, epochs=1
    )
    assert result.metrics[0]["trained"] == 3
    np.savez(tmp_path / "a.npz", **arrays, site=site, test_site=site)
    with pytest.raises(Refused, match="column 'site' has 6 test values for 3 samples"):
        load("npz", {"path": str(tmp_path / "a.npz")})
