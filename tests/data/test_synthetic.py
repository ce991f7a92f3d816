"""Clients whose samples are made when they come: the same as if all had been there, and as many as one likes."""

import json

import numpy as np
import pytest
import torch

import holdfast
from holdfast.data.dealing import Ranges
from holdfast.data.plan import sample
from holdfast.data.sets import Dataset
from holdfast.data.splits import Split
from holdfast.data.synthetic import synthetic
from holdfast.errors import Refused
from holdfast.experiment import Run, ready
from holdfast.simulate import State, rounds

TWENTY = "synthetic(alpha=0.5, beta=2.0, clients=20, samples=30)"
COMMON = {"model": "logreg", "cohort": 4, "rounds": 3, "epochs": 2, "lr": 0.05, "threads": 1}


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("method", ["fedavg", "scaffold"])
def test_made_on_demand_is_the_same_as_all_at_once(method, engine):
    lazy = synthetic(0.5, 2.0, 20, 30)
    assert lazy.source
    x, y = lazy.source.made(range(20))
    whole = Dataset.of(x, y, lazy.test_x, lazy.test_y, classes=10, mean=0.0, std=1.0)
    rows = Split("own", tuple(np.arange(600).reshape(20, 30)), 0)
    one = holdfast.run(method=method, data=TWENTY, split="own", engine=engine, **COMMON)
    other = holdfast.run(method=method, data=whole, split=rows, engine=engine, **COMMON)
    assert torch.equal(one.server.w, other.server.w)
    for a, b in zip(one.metrics, other.metrics, strict=True):
        assert {k: v for k, v in a.items() if "seconds" not in k} == {
            k: v
            for k, v in b.items()
            if "seconds" not in k and "client_" not in k  # which takes all clients' labels
        }


def test_the_law_of_a_client():
    """FedProx 5.1 on many samples: the spread of x in coordinate j is j^-0.6 about a mean of its own."""
    source = synthetic(1.0, 1.0, 10, 20000).source
    assert source
    x, y = source.made([3])
    assert x.dtype == np.float32 and np.allclose(x.std(0), np.arange(1, 61) ** -0.6, rtol=0.03)
    assert x.mean(0).std() > 0.5  # v_k has entries from N(B_k, 1)
    assert set(np.unique(y)) <= set(range(10))
    alone = source.made([2, 3])
    assert np.array_equal(alone[0][20000:], x)  # whoever comes along


def test_iid_clients_share_one_law():
    source = synthetic(0, 0, 5, 4000, iid=True).source
    assert source
    shares = [np.bincount(source.made([i])[1], minlength=10) / 4000 for i in range(5)]
    assert max(np.abs(s - shares[0]).max() for s in shares) < 0.04  # four standard deviations of a share of 4000


def test_a_million_clients_are_two_numbers(tmp_path):
    text = "synthetic(alpha=1, beta=1, clients=1000000, samples=50)"
    done = holdfast.run(method="scaffold", data=text, split="own", out=tmp_path / "a", **COMMON)
    stored = json.loads((tmp_path / "a" / "split.json").read_text())
    assert stored["ranges"] == [1000000, 50] and (tmp_path / "a" / "split.json").stat().st_size < 5000
    assert Split.load(tmp_path / "a" / "split.json").clients == Ranges(1000000, 50)
    more = holdfast.run(out=tmp_path / "a", resume=True, rounds=4, method="scaffold", data=text, split="own",
                        **{k: v for k, v in COMMON.items() if k != "rounds"})  # fmt: skip
    assert len(more.metrics) == 4 and done.metrics[0]["clients"] == 4
    again = holdfast.run(method="scaffold", data=text, split="own", **{**COMMON, "rounds": 4})
    assert torch.equal(more.server.w, again.server.w)


def test_scaffold_on_a_million_clients_keeps_a_row_for_whoever_took_part(tmp_path):
    """Rows are counted against the ids that the plan draws; the table grows by doubling, so less than twice as many."""
    run = Run(method="scaffold", data="synthetic(clients=1000000, samples=50)", split="own", model="logreg", cohort=10,
              rounds=6, steps=1, threads=1)  # fmt: skip
    fed = ready(run).federation
    state = State.of(fed)
    assert len(list(rounds(fed, state, 6))) == 6
    visited = {int(i) for t in range(6) for i in sample(run.seed, t, 1_000_000, 10)}
    ids, held = state.memory.state()  # what a checkpoint holds
    assert set(ids) == visited and len(ids) == len(visited) == 60
    tables = [t for record in held.values() for t in record.values()]
    assert tables and all(len(t) == 60 for t in tables)
    assert all(60 <= len(t) < 120 for record in state.memory.table.values() for t in record.values())
    assert bool((held["scaffold"]["c"] != 0).any(1).all())  # each of them has stored what it learned


@pytest.mark.parametrize(
    "options, words",
    [
        ({"data": TWENTY, "split": "iid(clients=5)"}, "its split is 'own'"),
        ({"data": "digits", "split": "own"}, "such as synthetic"),
        ({"data": "synthetic(clients=0, alpha=-1.0)", "split": "own"}, "clients=0"),
        ({"data": TWENTY, "split": "own", "finetune": 1}, "finetune visits every client"),
        ({"data": TWENTY, "split": "own", "drift": "period"}, "drift mixes"),
        ({"data": TWENTY, "split": "own", "method": "fedper"}, "private layers"),
    ],
)
def test_what_cannot_be(options, words):
    with pytest.raises(Refused, match=words):
        ready(Run(**{**COMMON, **options}))
