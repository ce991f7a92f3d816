"""`--finetune`: every client tunes the final model on its own data (FedBABU's evaluation; methods-server.md 11.1)."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from holdfast.experiment import Run, ready
from holdfast.models import zoo
from holdfast.personal import finetuned, tuned
from holdfast.simulate import State, advance

# Batches as large as the largest client: one step an epoch, whatever the order of the samples.
RUN = Run(
    split="dirichlet(alpha=0.3, clients=10)", cohort=4, model="mlp(hidden=8)", rounds=2, epochs=1, batch=200, lr=0.2,
    lr_decay=0.5, threads=1, dtype="float64", finetune=3,
)  # fmt: skip
BASE = "run --threads 1 --split 'dirichlet(alpha=0.3, clients=10)' --cohort 4 --model 'mlp(hidden=8)' --steps 2"
KEYS = ["finetuned_accuracy", "finetuned_pooled", "finetuned_sd", "finetuned_worst_decile"]


def trained(run):
    fed = ready(run).federation
    state = State.of(fed)
    for t in range(run.rounds):
        advance(replace(fed, tuning=None), state, last=t + 1 == run.rounds)
    return fed, state


def by_hand(fed, state, i, private=None):
    """The model of client i by torch.optim.SGD: 3 full batches at the lr of round 2, 0.2 * 0.5."""
    module = zoo.build("mlp", {"hidden": 8}, fed.data.shape, 10, 0).double()
    named = {name: p.detach().double() for name, p in module.named_parameters()}  # a frozen head is as it began
    named |= fed.task.layout.split(state.server.w)
    named |= private or {}
    module.load_state_dict(named)
    rows = torch.from_numpy(fed.clients[i])
    x, y = fed.data.prepare(fed.data.x[rows], torch.float64), fed.data.y[rows]
    optimiser = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(3):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(x)[0], y).backward()
        optimiser.step()
    return module


def judged(fed, module, i):
    """Accuracy class by class on the test data, weighed by the client's own shares of the classes."""
    right = module(fed.data.prepare(fed.data.test_x, torch.float64))[0].argmax(1) == fed.data.test_y
    share = np.bincount(fed.data.y[torch.from_numpy(fed.clients[i])], minlength=10) / len(fed.clients[i])
    return sum(share[c] * float(right[fed.data.test_y == c].double().mean()) for c in range(10))


@pytest.mark.parametrize("method", ["fedavg", "freeze", "fedper", "scaffold + sam + wd"])
@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_against_torch(method, engine):
    # All parameters train, a frozen head too, by plain SGD whatever the method; a private head is the client's own.
    fed, state = trained(replace(RUN, method=method, engine=engine))
    assert fed.tuning
    found, scores = {i: w for i, w, _ in tuned(fed, state)}, []
    assert sorted(found) == list(range(10))
    for i, w in found.items():
        private = {}
        if fed.task.layout.private:
            placed = fed.task.layout.place(state.server.w, state.memory.look(i)["private"]["w"])
            private = fed.task.layout.split(placed)
        module = by_hand(fed, state, i, private)
        for name, tensor in fed.tuning.task.layout.split(w).items():
            assert (tensor - dict(module.named_parameters())[name]).abs().max() < 1e-12
        scores.append(judged(fed, module, i))
    row = finetuned(fed, state)
    pooled = np.average(scores, weights=[len(fed.clients[i]) for i in found])  # MS 11.2: correct over samples
    wanted = [np.mean(scores), pooled, np.std(scores), np.quantile(scores, 0.1)]
    assert np.allclose([row[key] for key in KEYS], wanted, atol=1e-12) and set(row) == set(KEYS)


def test_only_the_last_row_has_it_and_nothing_else_changes(hold, folder):
    assert hold(f"{BASE} --rounds 3 --finetune 2 --eval-every 2 --out a").code == 0
    assert hold(f"{BASE} --rounds 3 --eval-every 2 --out b").code == 0
    rows = folder("a").same
    assert [[key for key in KEYS if key in row] for row in rows] == [[], [], KEYS]
    assert [{k: v for k, v in row.items() if k not in KEYS} for row in rows] == folder("b").same
    assert folder("a").bits == folder("b").bits


def test_clients_without_samples_are_left_out(hold, folder):
    split = "\"dirichlet(alpha=0.02, clients=30, rule='classwise', empty='allow')\""
    done = hold(f"{BASE} --split {split} --rounds 1 --finetune 1 --out a")
    assert done.code == 0, done.err
    assert 0 <= folder("a").metrics[-1]["finetuned_accuracy"] <= 1


@pytest.mark.parametrize("method", ["fedbabu", "fedper"])
def test_resume_neither_repeats_nor_loses_it(hold, folder, method):
    line = f"{BASE} --method {method} --finetune 2"
    assert hold(f"{line} --rounds 3 --out whole").code == 0
    assert hold(f"{line} --rounds 2 --out a").code == 0
    assert hold("run --out a --resume --rounds 3").code == 0
    a, whole = folder("a").same, folder("whole").same
    assert a[-1] == whole[-1] and set(KEYS) <= set(a[-1]) and folder("a").bits == folder("whole").bits
    before = folder("a").content
    assert hold("run --out a --resume").code == 0
    assert folder("a").content == before


def test_a_kill_between_the_last_row_and_its_checkpoint(hold, folder):
    # The row is written before the checkpoint; without that one the round is done again, with the same figures.
    assert hold(f"{BASE} --rounds 2 --finetune 2 --checkpoint-every 1 --out a").code == 0
    rows, last = folder("a").same, folder("a").checkpoints[-1]
    for file in last.iterdir():
        file.unlink()
    last.rmdir()
    assert hold("run --out a --resume").code == 0
    assert folder("a").same == rows


def test_the_summary_tells_it(hold):
    done = hold(f"{BASE} --rounds 1 --finetune 1 --json")
    row, last = done.rows
    assert last["summary"]["finetuned_accuracy"] == row["finetuned_accuracy"]
    assert "finetuned accuracy" in hold(f"{BASE} --rounds 1 --finetune 1").out


def test_a_model_that_diverges_counts_as_wrong_and_is_named():
    fed, state = trained(RUN)
    state.server = state.server._replace(w=state.server.w.fill_(float("inf")))
    row = finetuned(fed, state)
    assert row["finetuned_accuracy"] == 0 and row["finetuned_lost"] == list(range(10))
    json.dumps(row, allow_nan=False)


@pytest.mark.parametrize("value", ["-1", "0.5"])
def test_wrong_numbers_are_refused(hold, folder, value):
    done = hold(f"{BASE} --finetune {value} --out a")
    assert done.code == 2 and "finetune" in done.err and not folder("a").path.exists()
