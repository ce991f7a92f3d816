"""Who trains on what, the same bits for the same plan, executors that agree, and what happens when a run diverges."""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import holdfast as hf
from holdfast import cli
from holdfast.data.plan import sample
from holdfast.data.splits import Split
from holdfast.experiment import Run, ready
from holdfast.simulate import Federation, State, advance
from holdfast.vector import leaves, mapped

SOURCE = str(Path(__file__).parents[2] / "src")
RUN = Run(split="dirichlet(alpha=0.3, clients=20)", cohort=5, model="mlp(hidden=8)", rounds=3, threads=1)
METHODS = [
    "fedavg", "fedprox", "scaffold", "feddyn", "feddc", "fedcm", "fedasam", "fedsmoo", "fedlesam_d", "fedfft_s", "gc",
    "fedinit", "fednova", "fedgh", "fedeve", "fedadam", "fedper", "moon", "uniform + momentum + clip",
]  # fmt: skip


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def hold(capfd):
    def call(line):
        capfd.readouterr()
        return cli.main(shlex.split(line)), *capfd.readouterr()

    return call


def federation(**changes) -> Federation:
    return ready(dataclasses.replace(RUN, **changes)).federation


def seen(fed: Federation, rounds: int = 3) -> list:
    """The cohorts of the first rounds, as the executor gets them."""
    found, inner = [], fed.execute

    def record(options, down, cohort, feed):
        found.append((cohort.ids, cohort.keys, cohort.index, cohort.live, cohort.cards["n"], cohort.cards["classes"]))
        return inner(options, down, cohort, feed)

    watched, state = dataclasses.replace(fed, execute=record), State.of(fed)
    for _ in range(rounds):
        advance(watched, state)
    return found


def same(a, b) -> bool:
    return all(torch.equal(x, y) for one, two in zip(a, b, strict=True) for x, y in zip(one, two, strict=True))


def run(fed: Federation, rounds: int = 3) -> State:
    state = State.of(fed)
    for _ in range(rounds):
        advance(fed, state)
    return state


def everything(state: State) -> dict[str, torch.Tensor]:
    """All that goes to the next round, by name; a client's memory under its id."""
    ids, rows = state.memory.state()
    order = torch.tensor(ids).argsort()
    tree = {"w": state.server.w, "buffers": state.server.buffers, "parts": state.server.parts}
    named = {**tree, "memory": mapped(lambda t: t[order], rows)}
    found: dict[str, torch.Tensor] = {"ids": torch.tensor(ids)[order]}

    def walk(tree, name):
        for key, value in tree.items():
            if isinstance(value, dict):
                walk(value, f"{name}{key}/")
            else:
                found[f"{name}{key}"] = value

    walk(named, "")
    return found


def assert_close(a: State, b: State, bound: float) -> None:
    """decisions.md 10: |a - b| <= bound (1 + |a|), every state."""
    one, two = everything(a), everything(b)
    assert one.keys() == two.keys()
    for name, value in one.items():
        off = ((value.double() - two[name].double()).abs() / (1 + value.double().abs())).max() if value.numel() else 0
        assert off <= bound, f"{name} differs by {float(off):.2e}"


# Who trains on what


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("cohort", [5, "bernoulli(0.3)"])
def test_all_methods_see_the_same_clients_and_batches(method, cohort):
    # Issue 2: "different methods see the same clients and batches in each round"; drawn from counters (data/plan.py).
    wanted = seen(federation(cohort=cohort, engine="loop"))
    assert same(seen(federation(method=method, cohort=cohort)), wanted)


@pytest.mark.parametrize(
    "changes", [{"engine": "batched", "lanes": 3}, {"model": "mlp"}, {"lr": 0.01}, {"dtype": "float64"}]
)
def test_nothing_else_changes_clients_and_batches(changes):
    wanted, found = seen(federation(engine="loop")), seen(federation(**changes))
    for one, two in zip(wanted, found, strict=True):
        assert all(torch.equal(one[i], two[i]) for i in range(4))


def test_clients_and_batches_of_a_round_do_not_depend_on_the_rounds_before():
    # Counters, not streams: round 3 alone draws what it draws after rounds 1 and 2, and a longer run begins alike.
    assert same(seen(federation(rounds=50), 2), seen(federation(), 3)[:2])


def test_cohorts_are_sorted_and_without_repeats():
    # decisions.md 3: sums over clients run in ascending id.
    for ids, *_ in seen(federation(cohort="bernoulli(0.5)"), 5):
        assert ids.tolist() == sorted(set(ids.tolist())) and len(ids)


def test_every_sample_of_a_client_is_seen_once_an_epoch():
    fed = federation(epochs=2)
    for ids, _, index, live, *_ in seen(fed, 2):
        for k, client in enumerate(ids.tolist()):
            wanted = np.sort(np.tile(fed.clients[client], 2))
            assert np.array_equal(np.sort(index[k][live[k]].numpy()), wanted)


def test_a_client_is_dealt_new_batches_in_another_round():
    fed = federation(cohort=20)
    first, second = seen(fed, 2)
    assert torch.equal(first[0], second[0]) and not torch.equal(first[2], second[2])
    assert not (first[1] == second[1]).any()


def test_seeds_differ_in_everything():
    # A seed steers split, model, cohorts and batches; another seed gives another of each.
    a, b = federation(seed=0), federation(seed=1)
    assert not torch.equal(a.task.start, b.task.start)
    assert any(not np.array_equal(x, y) for x, y in zip(a.clients, b.clients, strict=True))
    assert [sample(0, t, 20, 5).tolist() for t in range(9)] != [sample(1, t, 20, 5).tolist() for t in range(9)]
    fixed = Split("fixed", a.clients, 0)
    mine, theirs = seen(federation(split=fixed, cohort=20), 1), seen(federation(split=fixed, cohort=20, seed=1), 1)
    assert not torch.equal(mine[0][2], theirs[0][2]) and not (mine[0][1] == theirs[0][1]).any()


# The same bits

SCRIPT = """
import hashlib, sys, holdfast as hf
for engine in ("loop", "batched"):
    done = hf.run(method="feddc + sam", model="cnn(norm='bn', width=2)", split="dirichlet(alpha=0.3, clients=20)",
                  cohort=5, rounds=2, steps=3, threads=1, engine=engine)
    print(hashlib.sha256(done.server.w.numpy().tobytes()).hexdigest())
"""


def test_a_second_process_gives_the_same_bits(capfd):
    # decisions.md 3: same seed and same plan, same bits; another process changes nothing, nor does its hash seed.
    environment = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONHASHSEED": "12"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    hf.run(**{f.name: getattr(RUN, f.name) for f in dataclasses.fields(Run)})  # something else before, in this one
    torch.rand(3)
    capfd.readouterr()
    exec(SCRIPT, {})
    assert done.returncode == 0 and done.stdout == capfd.readouterr().out, done.stderr


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("method", ["feddc", "fedsmoo", "fedadam + sam", "fedgh"])
def test_a_run_is_repeated_bit_for_bit(engine, method):
    changes = {"engine": engine, "method": method, "model": "cnn(norm='bn', width=2)", "steps": 3}
    one, two = (everything(run(federation(**changes))) for _ in range(2))
    assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


# Executors agree


@pytest.mark.parametrize(
    "method", ["feddc", "fedsmoo", "scaffold + sam + specpert + specgrad", "fedlesam_d", "fednova"]
)
@pytest.mark.parametrize("norm", ["gn", "bn"])
def test_loop_and_batched_agree_in_float64(method, norm):
    # decisions.md 10: 3 rounds x 5 steps in float64 to 1e-12, every state; clients with partial batches (71 = 3 x 20 +
    # 11), and 5 clients in lanes of 3.
    both: dict = {"method": method, "model": f"cnn(norm='{norm}', width=4)", "dtype": "float64", "steps": 5}
    loop = run(federation(engine="loop", **both))
    assert_close(loop, run(federation(engine="batched", lanes=3, **both)), 1e-12)
    assert all(torch.isfinite(t).all() for t in leaves(loop.server))


def test_lanes_change_float64_only_within_the_bound():
    both: dict = {"method": "feddc", "model": "cnn(width=4)", "dtype": "float64", "steps": 5, "engine": "batched"}
    assert_close(run(federation(lanes=1, **both)), run(federation(lanes=5, **both)), 1e-12)


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_a_batch_beyond_all_data_is_everything_a_client_has(engine):
    """Padded to the largest client, not to the number that was asked for; and to no larger one of a luckier cohort."""
    huge, largest = federation(engine=engine, batch=99999999999), int(federation().sizes.max())
    assert {index.shape[-1] for _, _, index, *_ in seen(huge, 6)} == {largest}
    exact = federation(engine=engine, batch=largest)
    one, two = everything(run(huge)), everything(run(exact))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("drift", ["period", "client(alpha=0.05)"])
def test_a_batch_holds_what_a_drift_deals(drift):
    """client(alpha) pools a round's data and deals parts of any size: one client may get nearly all."""
    fed = federation(batch=10**9, drift=drift, steps=2)
    assert all(int(live.sum(-1).max()) == int(n.max()) for _, _, _, live, n, _ in seen(fed))


# Which executor


@pytest.mark.parametrize("model", ["logreg", "mlp", "cnn", "resnet20"])
def test_auto_says_what_it_picked_and_why(model):
    # Issue 2, 3: `--engine auto` picks from a table, says what it picked and why.
    plan = ready(dataclasses.replace(RUN, model=model)).plan
    assert plan.why.startswith(f"{plan.engine}: ") and model in plan.why and "loop" in plan.why
    assert (plan.engine == "loop") == (plan.lanes == 1)


BRANCH = """
from torch import nn

class Branch(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        x = x.flatten(1)
        if x.sum() > 0:
            x = 0.9 * x
        return self.head(x)

def branch(shape, classes):
    return Branch(classes)

class Twice(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        rows = x.flatten(1).abs().sum(1).nonzero()[:, 0]  # as many rows as there are: no fixed shape under vmap
        return self.head(x.flatten(1)) + 0 * rows.sum()

def shape_from_data(shape, classes):
    return Twice(classes)
"""


@pytest.fixture
def mine(tmp_path):
    name = f"mine_cohorts_{os.getpid()}"
    (tmp_path / f"{name}.py").write_text(BRANCH)
    sys.modules.pop(name, None)
    return name


LINE = "run --threads 1 --split 'dirichlet(alpha=0.3, clients=20)' --cohort 5 --rounds 2"


@pytest.mark.parametrize("model", ["branch", "shape_from_data"])
def test_auto_falls_back_to_the_loop_in_plain_words(hold, mine, model):
    # Issue 2, 3: "falls back with a plain message where a model can't be mapped".
    code, out, err = hold(f"{LINE} --model {mine}:{model}")
    assert code == 0, err
    assert "loop:" in err and "Traceback" not in err and len(out.splitlines()) == 3


@pytest.mark.parametrize("model", ["branch", "shape_from_data"])
def test_auto_falls_back_where_the_table_says_batched(mine, monkeypatch, model):
    # As above on a device or for a model for which the table would choose batched.
    from holdfast.execute import auto

    monkeypatch.setattr(auto, "choose", lambda *a, **k: auto.Choice("batched", 5, "batched: the table says so"))
    plan = ready(dataclasses.replace(RUN, model=f"{mine}:{model}")).plan
    assert plan.engine == "loop" and plan.lanes == 1 and "cannot be mapped" in plan.why


@pytest.mark.parametrize("model", ["branch", "shape_from_data"])
def test_batched_is_refused_for_a_model_that_cannot_be_mapped(hold, mine, tmp_path, model):
    code, out, err = hold(f"{LINE} --model {mine}:{model} --engine batched --out a")
    assert code == 2 and "cannot be mapped" in err and "--engine loop" in err and "Traceback" not in err, err
    assert not out and not (tmp_path / "a").exists()


# A run that diverges


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_a_diverging_run_stops_and_names_round_and_clients(hold, tmp_path, engine):
    # decisions.md 9: "Non-finite update: stop, or --on-nan drop"; product.md: exit code 1 for what failed.
    code, out, err = hold(f"{LINE} --model cnn --lr 1e6 --engine {engine} --out a")
    wanted = sample(0, 0, 20, 5).tolist()
    assert code == 1 and "round 1" in err and "Traceback" not in err and "--on-nan drop" in err, err
    assert all(str(client) in err.partition("client")[2] for client in wanted) and not out
    assert not (tmp_path / "a" / "checkpoint").exists()  # there is no whole round to keep
    code, out, err = hold(f"{LINE} --model cnn --lr 1e6 --engine {engine} --on-nan drop --json")
    rows = [json.loads(text) for text in out.splitlines()]
    assert code == 0 and rows[0]["dropped"] == wanted and rows[0]["trained"] == 0
    assert rows[0]["train_loss"] is None and rows[-1]["summary"]["rounds"] == 2


POISON = """
import numpy as np
from torch import nn

def data():
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, 120)
    x = (draw.normal(size=(120, 4)) + y[:, None]).astype("float32")
    x[7] = 3e38
    return dict(x=x, y=y, test_x=x[40:], test_y=y[40:], mean=0.0, std=1.0)

def norm(shape, classes):
    return nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, classes))
"""
SICK = 7 // 6  # the client that holds sample 7


@pytest.fixture
def poison(tmp_path):
    """20 clients of 6 samples; one of them holds a value whose square overflows. The options of a run of 8 rounds."""
    name = f"mine_poison_{os.getpid()}"
    (tmp_path / f"{name}.py").write_text(POISON)
    sys.modules.pop(name, None)
    split = Split("six each", tuple(np.arange(6 * i, 6 * i + 6) for i in range(20)), 0)
    split.save(tmp_path / "six.json")
    turns = [t + 1 for t in range(40) if SICK in sample(SEED, t, 20, 4)]
    assert 3 <= turns[0] <= 6
    return (
        f"run --threads 1 --data {name}:data --split six.json --cohort 4 --seed {SEED} --batch 6 --epochs 3 --lr 0.05",
        turns,
    )


SEED = next(s for s in range(100) if 3 <= next(t for t in range(99) if SICK in sample(s, t, 20, 4)) <= 5)


def bits(folder: Path) -> dict:
    newest = sorted(p for p in (folder / "checkpoint").iterdir())[-1]
    tensors = load_file(newest / "state.safetensors")
    ids = json.loads((newest / "state.json").read_text())["ids"]
    return {"name": newest.name, "ids": ids, **{k: t.numpy().tobytes() for k, t in tensors.items()}}


def assert_holds(found: dict, wanted: dict) -> None:
    """The same checkpoint; it may have rows more, for clients of the round that failed, with what is fresh (zeros)."""
    assert found["name"] == wanted["name"] and found["ids"][: len(wanted["ids"])] == wanted["ids"]
    for key in wanted.keys() - {"name", "ids"}:
        assert found[key][: len(wanted[key])] == wanted[key], key
        assert not any(found[key][len(wanted[key]) :]), key


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_a_run_that_diverges_late_keeps_what_it_had(hold, poison, tmp_path, engine):
    # errors.Failed: "what it had computed is kept and the message says where".
    line, turns = poison
    line = f"{line} --method scaffold --model 'mlp(hidden=8)' --engine {engine}"
    code, out, err = hold(f"{line} --rounds {turns[0] + 3} --out a")
    assert code == 1 and f"round {turns[0]}:" in err and f"client {SICK} " in err, err
    assert len(out.splitlines()) == turns[0] - 1
    assert hold(f"{line} --rounds {turns[0] - 1} --out b")[0] == 0
    assert_holds(bits(tmp_path / "a"), bits(tmp_path / "b"))
    code, _, err = hold(f"run --out a --resume --rounds {turns[0] + 9}")  # going on meets the same client again
    assert code == 1 and f"round {turns[0]}:" in err and "Traceback" not in err
    assert_holds(bits(tmp_path / "a"), bits(tmp_path / "b"))


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("method", ["scaffold", "feddyn", "fedsmoo", "fedadam", "fedgh", "fednova", "fedcm"])
def test_on_nan_drop_leaves_out_just_the_sick_client(hold, poison, tmp_path, engine, method):
    # decisions.md 9; simulate.finite: "goes on as if they had not answered".
    line, turns = poison
    rounds = turns[1] if len(turns) > 1 else turns[0]
    line = f"{line} --method {method} --model 'mlp(hidden=8)' --engine {engine}"
    code, out, err = hold(f"{line} --on-nan drop --rounds {rounds} --json --out a")
    assert code == 0, err
    rows = [json.loads(text) for text in out.splitlines()][:-1]
    assert {row["round"]: row["dropped"] for row in rows if "dropped" in row} == {
        t: [SICK] for t in turns if t <= rounds
    }
    assert [row["trained"] for row in rows] == [4 - ("dropped" in row) for row in rows]
    newest = sorted(p for p in (tmp_path / "a" / "checkpoint").iterdir())[-1]
    assert all(torch.isfinite(t).all() for t in load_file(newest / "state.safetensors").values())


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_statistics_that_are_not_finite_are_noticed(hold, poison, tmp_path, engine):
    # A BatchNorm variance that overflows leaves the update finite (everything is divided by infinity) and poisons the
    # model that is evaluated. decisions.md 10: "elsewhere a NaN is named, not replaced".
    line, turns = poison
    code, _, err = hold(f"{line} --model mine_poison_{os.getpid()}:norm --engine {engine} --rounds {turns[0]} --out a")
    newest = sorted(p for p in (tmp_path / "a" / "checkpoint").iterdir())[-1]
    finite = all(torch.isfinite(t).all() for t in load_file(newest / "state.safetensors").values())
    assert finite, "a checkpoint holds BatchNorm statistics that are not finite"
    assert code == 1 and f"client {SICK} " in err, err
