"""Partitioners of Flower Datasets, against the real package (pip install "holdfast[flower]")."""

import importlib.util
import sys

import numpy as np
import pytest

from holdfast.data.dealing import Samples
from holdfast.data.sets import Column
from holdfast.data.splits import check, make
from holdfast.errors import Refused
from holdfast.text import one

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 10, 600)
WRITER = RNG.integers(0, 12, 600)
SAMPLES = Samples(LABELS, 10, {"writer": Column(tuple("lkjihgfedcba"), WRITER, np.zeros(0, dtype=np.int64))})
MISSING = importlib.util.find_spec("flwr_datasets") is None
needs_flower = pytest.mark.skipif(MISSING, reason='flwr-datasets is not here: pip install "holdfast[flower]"')
CASES = [
    ("IidPartitioner", {"num_partitions": 7}),
    ("DirichletPartitioner", {"num_partitions": 5, "alpha": 0.5, "partition_by": "label"}),
    ("InnerDirichletPartitioner", {"partition_sizes": [100] * 6, "alpha": 0.5, "partition_by": "label"}),
    ("PathologicalPartitioner", {"num_partitions": 10, "partition_by": "label", "num_classes_per_partition": 2}),
    ("ShardPartitioner", {"num_partitions": 10, "partition_by": "label", "num_shards_per_partition": 2}),
    ("NaturalIdPartitioner", {"partition_by": "writer"}),
    ("GroupedNaturalIdPartitioner", {"partition_by": "writer", "group_size": 5}),
    ("LinearPartitioner", {"num_partitions": 5}),
    ("SizePartitioner", {"partition_sizes": [400, 200]}),
    ("ContinuousPartitioner", {"num_partitions": 5, "partition_by": "label", "strictness": 0.5}),
]


def split(name, options, seed=3):
    return make(f"flower:{name}", options, SAMPLES, seed, "text")


def refused(name, options):
    with pytest.raises(Refused) as caught:
        split(name, options)
    return str(caught.value)


@needs_flower
@pytest.mark.parametrize("order", ["shuffled", "stored"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_same_rows_as_the_package(name, options, order):
    # Written here as a user of Flower writes it: FederatedDataset(shuffle=True, seed=...) shuffles, then partitions.
    datasets = pytest.importorskip("datasets")
    kind = getattr(pytest.importorskip("flwr_datasets.partitioner"), name)
    seeded = {"seed": 11} if "seed" in kind.__init__.__code__.co_varnames else {}
    names = [SAMPLES.columns["writer"].names[i] for i in WRITER]
    whole = datasets.Dataset.from_dict({"i": range(600), "label": LABELS, "writer": names})
    theirs = kind(**options, **seeded)
    theirs.dataset = whole.shuffle(seed=11) if order == "shuffled" else whole
    wanted = [list(theirs.load_partition(i)["i"]) for i in range(theirs.num_partitions)]
    ours = split(name, {**options, **({"order": order} if order == "stored" else {})}, seed=11)
    assert [rows.tolist() for rows in ours.clients] == wanted and ours.tests == ()


@needs_flower
def test_the_seed_is_the_runs_unless_it_is_named():
    options = {"num_partitions": 5, "alpha": 0.5, "partition_by": "label"}
    assert split("DirichletPartitioner", options).hash == split("DirichletPartitioner", options).hash
    assert split("DirichletPartitioner", options).hash != split("DirichletPartitioner", options, seed=4).hash
    named = {**options, "seed": 42}
    assert split("DirichletPartitioner", named).hash == split("DirichletPartitioner", named, seed=4).hash


@needs_flower
def test_a_text_names_it():
    call = one("flower:DistributionPartitioner(distribution_array=[[1.0]] , num_partitions=1)", "split")
    assert call.name == "flower:DistributionPartitioner"
    call = one("flower:DirichletPartitioner(num_partitions=10, alpha=0.1, partition_by='label')", "split")
    check(call.name, call.options)


@needs_flower
@pytest.mark.parametrize(
    ("name", "options", "part"),
    [
        ("DirichletPartitoner", {}, "did you mean DirichletPartitioner"),
        ("IidPartitioner", {}, "flower:IidPartitioner needs the option 'num_partitions'"),
        ("IidPartitioner", {"num_partition": 3, "num_partitions": 3}, "has no option 'num_partition'"),
        ("VerticalEvenPartitioner", {"num_partitions": 3}, "it deals features to clients, not samples"),
        ("IdToSizeFncPartitioner", {"num_partitions": 3}, "it needs a Python function"),
        ("IidPartitioner", {"num_partitions": 3, "order": "x"}, "order='x' is unknown"),
        ("IidPartitioner", {"num_partitions": 0}, "must be greater than zero"),
        ("NaturalIdPartitioner", {"partition_by": "role"}, "flwr-datasets refused"),
        ("DirichletPartitioner", {"num_partitions": 9, "alpha": 1e-3, "partition_by": "label"}, "attempts (10)"),
    ],
)
def test_what_flower_refuses_is_said_plainly(name, options, part):
    assert part in refused(name, options)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flwr_datasets", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "flwr_datasets.partitioner", raising=False)
    for problem in (lambda: check("flower:IidPartitioner", {}), lambda: split("IidPartitioner", {"num_partitions": 3})):
        with pytest.raises(Refused, match=r'pip install "holdfast\[flower\]"'):
            problem()
