"""`--drift`: each round's clients train on other parts of their pooled data (specs/models-data-metrics.md B4)."""

import tomllib
from dataclasses import replace

import pytest
import torch

from holdfast.data.plan import sample
from holdfast.experiment import Run, ready
from holdfast.simulate import State, gather

RUN = Run(split="dirichlet(alpha=0.1, clients=20)", cohort=5, model="logreg", threads=1, steps=2)
BASE = "run --threads 1 --split 'dirichlet(alpha=0.3, clients=20)' --cohort 5 --model logreg --rounds 3"
DRIFTS = ["period", "client(alpha=0.1)"]


def cohort(run, t=1):
    fed = ready(run).federation
    return gather(fed, State.of(fed), t, sample(fed.seed, t, len(fed.clients), fed.cohort)), fed


@pytest.mark.parametrize("drift", DRIFTS)
def test_every_method_sees_the_same_batches(drift):
    # decisions.md 7: from counters; scaffold draws and keeps more than fedavg does.
    a, b = (cohort(replace(RUN, drift=drift, method=method))[0] for method in ("fedavg", "scaffold + sam"))
    assert torch.equal(a.index, b.index) and torch.equal(a.live, b.live)
    assert torch.equal(a.cards["classes"], b.cards["classes"])


@pytest.mark.parametrize("drift", DRIFTS)
def test_cards_are_of_the_parts_trained_on(drift):
    # B4: 'Aggregation weights use the sizes of the parts actually trained on.' With one epoch every sample of a part
    # is seen once, so the batches tell which it holds.
    got, fed = cohort(replace(RUN, drift=drift, steps=None, epochs=1))
    plain, _ = cohort(replace(RUN, steps=None, epochs=1))
    for k in range(len(got.ids)):
        labels = fed.data.y[got.index[k][got.live[k]]]
        assert torch.bincount(labels, minlength=10).tolist() == got.cards["classes"][k].tolist()
        assert got.cards["n"][k] == len(labels)
    assert torch.equal(got.cards["classes"].sum(0), plain.cards["classes"].sum(0))
    assert not torch.equal(got.cards["classes"], plain.cards["classes"])
    if drift == "period":
        assert got.cards["n"].max() - got.cards["n"].min() <= 1


@pytest.mark.parametrize("drift", DRIFTS)
def test_resume_gives_the_same_bits(hold, folder, drift):
    line = f"{BASE} --method feddyn --steps 2 --drift '{drift}'"
    assert hold(f"{line} --out whole").code == 0
    assert hold(f"{line} --rounds 1 --out a").code == 0
    done = hold("run --out a --resume --rounds 3")
    assert done.code == 0, done.err
    assert folder("a").bits == folder("whole").bits and folder("a").same == folder("whole").same
    assert tomllib.loads((folder("a").path / "run.toml").read_text())["run"]["drift"] == drift


def test_client_alone_is_client_with_its_default(hold, folder):
    assert hold(f"{BASE} --rounds 1 --drift client --out a").code == 0
    done = hold("run --out a --resume --rounds 2 --drift 'client( alpha = .1 )'")
    assert done.code == 0, done.err


def test_an_empty_part_sits_the_round_out(hold):
    # P3: 'empty parts possible'; alpha 1e-3 gives each of ten classes to one of five clients.
    done = hold(f"{BASE} --drift 'client(alpha=0.001)' --rounds 8 --json")
    assert done.code == 0, done.err
    assert min(row["trained"] for row in done.rows[:-1]) < 5


@pytest.mark.parametrize("text", ["none", "period(alpha=1)", "client(alpha=0)", "client(beta=1)", "client(", "''"])
def test_another_word_is_refused_with_what_is_possible(hold, folder, text):
    done = hold(["run", "--drift", text.strip("'"), "--threads", "1", "--out", "a"])
    assert done.code == 2 and "both, period and client(alpha=0.1)" in done.err, done.err
    assert not folder("a").path.exists()


def test_resuming_with_another_drift_is_refused(hold):
    assert hold(f"{BASE} --rounds 1 --out a").code == 0
    done = hold("run --out a --resume --drift period")
    assert done.code == 2 and "drift is 'both'" in done.err and "'period' now" in done.err
    assert hold("run --out a --resume --drift perid").code == 2
