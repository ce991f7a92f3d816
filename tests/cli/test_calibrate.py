"""`holdfast calibrate RUN --ccvr ...` (decisions.md 11; methods-server.md 10.4)."""

import json

import pytest
import torch
from safetensors.torch import load_file

from holdfast.ccvr import ROWS, features, head_names
from holdfast.experiment import Run, ready
from holdfast.simulate import State

BASE = "run --threads 1 --split 'dirichlet(alpha=0.1, clients=20)' --cohort 5 --model 'mlp(hidden=16)' --rounds 4"
MODEL = """
from torch import nn


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.first = nn.Conv2d(1, 10, 8), nn.Linear({inside}, {inside})

    def forward(self, x):
        return self.conv({use}).flatten(1)


def plain():
    return nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten())


def odd():
    return Odd()
"""


def test_the_head_is_trained_and_the_body_stays(hold, folder):
    assert hold(f"{BASE} --out a").code == 0
    stored = load_file(folder("a").checkpoints[-1] / "state.safetensors")["server/w"]
    layout = ready(Run(model="mlp(hidden=16)", threads=1)).federation.task.layout
    before, others = layout.split(stored), folder("a").content or {}
    done = hold("calibrate a --ccvr samples=200 --json")
    assert done.code == 0, done.err
    after = load_file(folder("a").path / "calibrated.safetensors")
    assert set(after) == set(before)
    assert [n for n in before if not torch.equal(before[n], after[n])] == ["head.weight", "head.bias"]
    told = json.loads((folder("a").path / "calibrated.json").read_text())
    row = folder("a").metrics[-1]
    assert done.rows[0]["before"] == told["before"] == row["accuracy"]
    assert done.rows[0]["after"] == told["after"] and told["samples"] == 200 and told["round"] == 4
    # Few rounds at alpha 0.1 leave the head biased to the last cohort's classes; 1437 samples tell enough to better it.
    assert told["after"] > told["before"]
    now = folder("a").content or {}
    assert {k: v for k, v in now.items() if not k.startswith("calibrated")} == others


def test_same_seed_same_bits_and_out(hold, folder):
    assert hold(f"{BASE} --out a").code == 0
    for name in ("b", "c"):
        done = hold(f"calibrate a --ccvr 'samples=50, epochs=2' --out {name}")
        assert done.code == 0, done.err
    assert folder("b").content == folder("c").content and len(folder("b").content or {}) == 2
    assert not (folder("a").path / "calibrated.json").exists() and "before" in done.out
    assert hold("run --out a --resume --rounds 5").code == 0  # the run is none the worse


def test_features_are_the_inputs_of_the_last_layer_in_evaluation_mode():
    # logits = W f + b, by batch statistics that are the server's buffers: two halves give what the whole gives.
    made = ready(Run(model="cnn(norm='bn', width=2)", threads=1, dtype="float64"))
    fed, rows = made.federation, torch.arange(40)
    state, names = State.of(fed), head_names(fed)
    whole = features(fed, state, rows, names)
    halves = torch.cat([features(fed, state, part, names) for part in rows.split(20)])
    assert whole.shape == (40, 64) and torch.allclose(whole, halves, atol=1e-12) and ROWS >= 40
    logits = fed.task.forward(state.server.w, state.server.buffers, fed.plain(rows, rows >= 0)).logits
    tensors = fed.task.layout.split(state.server.w)
    assert torch.allclose(whole @ tensors["head.weight"].T + tensors["head.bias"], logits, atol=1e-12)


def test_what_is_no_finished_run_is_refused(hold, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("nothing", "empty"):
        done = hold(f"calibrate {name}")
        assert done.code == 2 and name in done.err and "--out named" in done.err, done.err
    assert hold(f"{BASE} --rounds 2 --checkpoint-every 1 --out a").code == 0
    recipe = folder("a").path / "run.toml"
    recipe.write_text(recipe.read_text().replace("rounds = 2", "rounds = 9"))
    done = hold("calibrate a")
    assert done.code == 2 and "2 of 9 rounds" in done.err and "holdfast run --out a --resume" in done.err
    assert not (folder("a").path / "calibrated.json").exists()


@pytest.mark.parametrize(
    "method, words",
    [("fedper", ["private", "head.weight"]), ("freeze", ["froze", "head.weight"])],
)
def test_private_and_frozen_heads_are_refused(hold, folder, method, words):
    assert hold(f"{BASE} --method {method} --rounds 1 --out a").code == 0
    done = hold("calibrate a")
    assert done.code == 2 and all(word in done.err for word in words), done.err
    assert not (folder("a").path / "calibrated.json").exists()


def test_models_without_a_linear_end_are_refused(hold, module):
    mine = module(MODEL.format(inside=8, use="self.first(x)"))
    for name, said in (("plain", "no linear layer"), ("odd", "not its last linear layer")):
        done = hold(f"{BASE} --model {mine}:{name} --rounds 1 --out {name}")
        assert done.code == 0, done.err
        done = hold(f"calibrate {name}")
        assert done.code == 2 and said in done.err, done.err


@pytest.mark.parametrize(
    "text, words",
    [
        ("samples=0", ["samples=0", "at least 1"]), ("samples='many'", ["samples='many'"]),
        ("sample=5", ["did you mean samples"]), ("samples", ["samples"]), ("samples=1, lr=-1", ["lr=-1"]),
        ("samples=", ["calibration"]),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(hold, text, words):
    done = hold(["calibrate", "a", "--ccvr", text])
    assert done.code == 2 and all(word in done.err for word in words), done.err
