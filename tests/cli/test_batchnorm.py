"""The policy of batch normalisation is named by every run whose model has such layers, and is what the round does."""

import json
import tomllib
from pathlib import Path

import torch
from torch import nn

from holdfast.batchnorm import POLICIES, policy
from holdfast.experiment import Run, ready
from holdfast.simulate import State, advance, gather, sample

RUN = "run --split 'iid(clients=8)' --cohort 4 --rounds 1 --steps 1 --threads 1"


def test_a_run_names_it_where_the_model_has_it(hold):
    done = hold(f"{RUN} --model \"cnn(width=2, norm='bn')\" --out a")
    assert done.code == 0 and f"BatchNorm, averaged: {POLICIES['averaged']}\n" in done.err
    assert tomllib.loads(Path("a/run.toml").read_text())["facts"]["batchnorm"] == "averaged"
    assert hold("report a -o a.html").code == 0
    assert "BatchNorm, averaged: a batch is normalised" in Path("a.html").read_text()
    done = hold(f"{RUN} --model 'cnn(width=2)' --out b")
    assert done.code == 0 and "BatchNorm" not in done.err and "batchnorm" not in Path("b/run.toml").read_text()


def test_a_folder_from_before_the_name_goes_on(hold):
    line = f"{RUN} --model \"cnn(width=2, norm='bn')\" --out a"
    assert hold(line).code == 0
    path = Path("a/run.toml")
    path.write_text("".join(t for t in path.read_text().splitlines(keepends=True) if not t.startswith("batchnorm")))
    assert hold("run --out a --resume --rounds 2").code == 0
    assert 'batchnorm = "averaged"' in path.read_text()


def test_explain_tells_it(hold):
    told = json.loads(hold("explain fedavg --model \"cnn(norm='bn')\" --json").out)
    assert told["batchnorm"] == f"averaged: {POLICIES['averaged']}"
    assert "BatchNorm of cnn" in hold("explain fedavg --model \"cnn(norm='bn')\"").out
    assert "batchnorm" not in json.loads(hold("explain fedavg --json").out)


def test_layers_that_keep_nothing_have_another_name():
    kept, none = nn.BatchNorm2d(2), nn.BatchNorm2d(2, track_running_stats=False)
    assert [policy(nn.Sequential(*layers)) for layers in ([kept, none], [none], [nn.GroupNorm(1, 2)])] == [
        "averaged", "batch", "",
    ]  # fmt: skip


def test_the_server_keeps_the_weighted_mean_of_running_statistics():
    """'averaged' by hand: statistics of each client's one batch, weighed by its samples."""
    run = Run(model="cnn(width=2, norm='bn')", split="dirichlet(alpha=0.3, clients=4, rule='classwise')", cohort=2,
              rounds=1, steps=1, batch=1000, threads=1, dtype="float64", engine="loop")  # fmt: skip
    fed = ready(run).federation
    state = State.of(fed)
    ids = sample(0, 0, 4, 2)
    cohort = gather(fed, state, 0, ids)
    name = "norm1.running_mean"
    conv = fed.task.layout.split(fed.task.start)["conv1.weight"]
    means = []
    for k in range(2):
        rows = cohort.index[k, 0][cohort.live[k, 0]]
        x = fed.data.prepare(fed.data.x[rows], torch.float64)
        means.append(
            0.1  # torch's momentum, from a running mean of 0
            * nn.functional.conv2d(x, conv, padding=1).mean((0, 2, 3))
        )
    n = torch.tensor([len(fed.clients[i]) for i in ids]).double()
    advance(fed, state)
    assert torch.allclose(state.server.buffers[name], (n[:, None] * torch.stack(means)).sum(0) / n.sum(), atol=1e-12)
    counters = [b for key, b in state.server.buffers.items() if key.endswith("num_batches_tracked")]
    assert counters and all(int(b) == 1 for b in counters)
