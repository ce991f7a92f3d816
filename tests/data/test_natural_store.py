"""Sets with natural clients through the store: imported, loaded again, the same to the bit, and ready for a run."""

import numpy as np
import pytest
import torch
from loaded import loaded
from test_femnist import split_set
from test_mnist_writers import small
from test_movielens import written as movielens
from test_shakespeare import roles_file
from test_yahoo import written as yahoo

from holdfast.data.bring import import_, load, recognised
from holdfast.errors import Refused

MAKE = {
    "femnist": split_set,
    "mnist_writers": small,
    "movielens1m": movielens,
    "shakespeare": lambda folder: roles_file(folder, {"a|B": ["To be, or not " * 100], "a|C": ["Howl! " * 300]}),
    "yahoo_answers": yahoo,
}
OPTIONS = {"femnist": {"paper": "white"}, "movielens1m": {"seed": 3}, "shakespeare": {"share": 0.8},
           "yahoo_answers": {"vocabulary": 6, "length": 4}, "mnist_writers": {}}  # fmt: skip


@pytest.mark.parametrize("name", MAKE)
def test_what_is_imported_is_loaded_again(tmp_path, name):
    copy = tmp_path / "copy"
    copy.mkdir()
    MAKE[name](copy)
    for options in ({}, OPTIONS[name]):
        import_(copy, name=name, options=options, data_dir=tmp_path / "store", checked=False, replace=True)
        found, direct = load(name, options, tmp_path / "store"), loaded(name, copy, **options)
        for part in ("x", "y", "test_x", "test_y"):
            one, other = getattr(found, part), getattr(direct, part)
            assert one.dtype == other.dtype and torch.equal(one, other)
        for key in ("classes", "kind", "codes", "mean", "std"):
            assert getattr(found, key) == getattr(direct, key)
        for key, column in direct.columns.items():
            assert found.columns[key].names == column.names
            assert np.array_equal(found.columns[key].train, column.train)
            assert np.array_equal(found.columns[key].test, column.test)


def test_a_copy_is_recognised_or_asked_about(tmp_path):
    for name in ("mnist_writers", "movielens1m", "yahoo_answers"):
        (tmp_path / name).mkdir()
        MAKE[name](tmp_path / name)
    assert recognised(tmp_path / "movielens1m").name == "movielens1m"
    assert recognised(tmp_path / "yahoo_answers").name == "yahoo_answers"
    # Fashion-MNIST's files have MNIST's names, mnist_writers has those and more; LEAF's json fits both of its sets.
    with pytest.raises(Refused, match="could be fashion_mnist or mnist or mnist_writers; say which"):
        recognised(tmp_path / "mnist_writers")
    split_set(tmp_path / "leaf")
    with pytest.raises(Refused, match="could be femnist or shakespeare"):
        recognised(tmp_path / "leaf")
