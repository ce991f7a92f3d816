"""`holdfast run`, `parts`, `--help` and `holdfast.run`: what a user types, gets and finds."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.data.splits import Split
from holdfast.parts import REGISTRY
from holdfast.presets import PRESETS

SOURCE = str(Path(__file__).parents[2] / "src")
BASE = "run --threads 1 --split 'dirichlet(alpha=0.3, clients=20)' --cohort 5 --model logreg --rounds 4"
OPTIONS: dict = {
    "threads": 1, "split": "dirichlet(alpha=0.3, clients=20)", "cohort": 5, "model": "logreg", "rounds": 4,
}  # fmt: skip


def equal(a, b):
    assert a.same == b.same
    assert a.bits == b.bits


# What a run leaves


def test_eve_shows_its_estimates_in_every_row(hold, folder):
    # Issue 4, item 4: Q, R and the gain are gauges; no other method has them.
    assert hold(f"{BASE} --method eve --out runs/eve").code == hold(f"{BASE} --out runs/plain").code == 0
    for row in folder("runs/eve").metrics:
        assert 0 < row["eve.gain"] <= 1 and row["eve.q"] > 0 and row["eve.r"] > 0
    assert not [key for row in folder("runs/plain").metrics for key in row if key.startswith("eve.")]


def test_a_run_writes_its_four_files(hold, folder):
    # product.md: run.toml, metrics.jsonl, split.json, checkpoint/ (report.html is not of this issue); issue 2, 5.
    done = hold(f"{BASE} --out runs/a --checkpoint-every 2")
    assert done.code == 0, done.err
    a = folder("runs/a")
    assert sorted(p.name for p in a.path.iterdir()) == ["checkpoint", "metrics.jsonl", "run.toml", "split.json"]
    assert [row["round"] for row in a.metrics] == [1, 2, 3, 4]
    assert [p.name for p in a.checkpoints] == ["00000002", "00000004"]
    assert sorted(p.name for p in a.checkpoints[0].iterdir()) == ["state.json", "state.safetensors"]
    split = Split.load(a.path / "split.json")
    stored = tomllib.loads((a.path / "run.toml").read_text())
    assert stored["facts"]["split_sha256"] == split.hash and len(split.clients) == 20
    assert stored["run"]["rounds"] == 4 and stored["run"]["model"] == "logreg"
    assert {"engine", "lanes", "threads", "dtype", "compile", "torch", "device"} <= set(stored["plan"])  # decisions 3


def test_run_toml_repeats_the_run(hold, folder):
    # product.md: "everything needed to repeat it".
    assert hold(f"{BASE} --method 'fedfft_s(r=0.02)' --lr 0.05 --seed 3 --out a").code == 0
    stored = tomllib.loads((folder("a").path / "run.toml").read_text())["run"]
    words = ["run", "--out", "b"]
    for key, value in stored.items():
        name = f"--{key.replace('_', '-')}"
        words += [name] * value if isinstance(value, bool) else [name, str(value)]
    assert hold(words).code == 0
    equal(folder("a"), folder("b"))


def test_every_digit_of_a_method_is_written_down(hold, folder):
    # decisions.md 9 and experiment.Run.texts: every option stands there, so that a later default changes nothing.
    assert hold(f"{BASE} --method feddyn --out a").code == 0
    stored = tomllib.loads((folder("a").path / "run.toml").read_text())["run"]
    assert stored["method"] == "dyn(alpha=0.1)"


def test_without_out_nothing_is_written(hold, tmp_path):
    assert hold(BASE).code == 0
    assert list(tmp_path.iterdir()) == []


def test_without_out_nobody_is_told_to_resume(forks, tmp_path):
    # Nothing was kept, so the advice would be wrong.
    pid = forks.start(f"{BASE} --rounds 3000", tmp_path)
    wait_for(tmp_path / "log.out", "round    1")
    os.kill(pid, signal.SIGINT)
    assert forks.wait(pid) == 1
    assert "--resume goes on" not in (tmp_path / "log.err").read_text()


# What is printed


def test_json_gives_one_object_a_round_and_a_summary(hold, folder):
    # product.md: `--json` for scripts; issue 2, 5. Anything else belongs on stderr.
    done = hold(f"{BASE} --json --out a")
    *rows, last = done.rows
    assert rows == folder("a").metrics
    assert set(last) >= {"summary", "done"} and last["done"] is True and last["summary"]["rounds"] == 4
    assert last["summary"]["best_accuracy"] == max(row["accuracy"] for row in rows)
    assert last["summary"]["last_accuracy"] == rows[-1]["accuracy"]


def test_json_stays_json_when_the_figures_overflow(hold, folder):
    # RFC 8259 has no NaN and no Infinity; jq and JavaScript stop at them. One step of lr 1e20 leaves the weights of
    # an mlp finite and its logits not.
    done = hold(f"{BASE} --model mlp --steps 1 --lr 1e20 --rounds 1 --json --out a")
    assert done.code in (0, 1) and isinstance(done.rows, list)
    assert done.code == 1 or folder("a").metrics


def test_wall_clock_figures_end_in_seconds(hold, folder):
    # product.md: "wall-clock figures only in keys that end in `_seconds`".
    assert hold(f"{BASE} --out a").code == 0
    assert hold(f"{BASE} --out b").code == 0
    assert any(key.endswith("_seconds") for key in folder("a").metrics[0])
    equal(folder("a"), folder("b"))
    for name in ("run.toml", "split.json"):
        assert (folder("a").path / name).read_bytes() == (folder("b").path / name).read_bytes()


def test_plain_lines_when_piped(hold):
    # product.md: "a live progress display on a terminal and plain lines when piped".
    done = hold(BASE)
    lines = done.out.splitlines()
    assert len(lines) == 6 and all(line.split()[:2] == ["round", str(i + 1)] for i, line in enumerate(lines[:4]))
    assert "accuracy" in lines[0] and "\x1b" not in done.out + done.err and "\r" not in done.out
    assert lines[-2].startswith("4 rounds: best accuracy") and lines[-1].startswith("last evaluated: client accuracy")


def test_engine_auto_says_what_it_picked_and_why(hold, folder):
    # Issue 2, 3.
    done = hold(f"{BASE} --out a")
    stored = tomllib.loads((folder("a").path / "run.toml").read_text())["plan"]
    assert f"{stored['engine']}:" in done.err and stored["why"] in done.err
    lines = done.err.splitlines()  # this one, and two of the split
    assert [line.partition(" ")[0] for line in lines[1:]] == ["split", "its"]


# Resuming


def test_resume_with_more_rounds_is_one_long_run(hold, folder):
    # decisions.md 9: --resume accepts a larger `rounds`; product.md: to the same bits.
    line = f"{BASE} --method feddc --model \"cnn(norm='bn', width=2)\""
    assert hold(f"{line} --rounds 6 --out whole").code == 0
    assert hold(f"{line} --rounds 2 --out a").code == 0
    assert hold(f"{line} --rounds 4 --out a --resume").code == 0
    done = hold("run --out a --resume --rounds 6 --json")  # nothing else needs to be said again
    assert [row["round"] for row in done.rows[:-1]] == [5, 6]
    assert done.rows[-1]["summary"]["rounds"] == 6
    equal(folder("a"), folder("whole"))
    assert tomllib.loads((folder("a").path / "run.toml").read_text())["run"]["rounds"] == 6


@pytest.mark.parametrize("method", [n for n in PRESETS if n not in ("feddc",)] + ["moon", "gc", "uniform + momentum"])
def test_every_preset_resumes_to_the_same_bits(hold, folder, method):
    # product.md: stop-and-resume to the same bits, client and server state included, for any method.
    line = f"{BASE} --model 'mlp(hidden=8)' --method '{method}' --steps 2" + " --proxy 0.02" * (method == "fedlaw")
    assert hold(f"{line} --out whole").code == 0
    assert hold(f"{line} --rounds 2 --out a").code == 0
    done = hold("run --out a --resume --rounds 4")
    assert done.code == 0, done.err
    equal(folder("a"), folder("whole"))


def test_resuming_a_finished_run_changes_nothing(hold, folder):
    line = f"{BASE} --method scaffold --out a"
    assert hold(line).code == 0
    before = folder("a").content
    done = hold(f"{line} --resume --json")
    assert done.code == 0 and len(done.rows) == 1 and done.rows[0]["done"] is True
    assert done.rows[0]["summary"]["rounds"] == 4
    assert folder("a").content == before


def test_resume_needs_no_split_json_where_a_kill_left_none(hold, folder):
    # results.py writes run.toml, then split.json; the split is made anew from its seed and checked by its hash.
    assert hold(f"{BASE} --out a").code == 0
    (folder("a").path / "split.json").unlink()
    assert hold(f"{BASE} --out a --resume --rounds 5").code == 0
    assert (folder("a").path / "split.json").exists()


def test_resume_takes_the_same_options_in_other_words(hold, folder):
    # The message of a refusal says "resume with the same options", and these are the same ones.
    assert hold(f"{BASE} --method 'scaffold + sam' --rounds 2 --out a").code == 0
    same = "--method 'sam(rho=0.1)+scaffold' --split 'dirichlet(alpha=.3,clients=20)' --cohort ' 5' --lr 1e-1"
    done = hold(f"run {same} --rounds 3 --out a --resume")
    assert done.code == 0, done.err


def test_a_run_from_python_resumes_on_the_command_line(hold, folder):
    # One folder format: hf.run(cohort=5) and --cohort 5 are the same option.
    hf.run(**{**OPTIONS, "rounds": 2}, out="a")
    done = hold(f"{BASE} --out a --resume")
    assert done.code == 0, done.err
    assert hold(f"{BASE} --out whole").code == 0
    equal(folder("a"), folder("whole"))


def test_the_last_round_of_the_shorter_run_may_be_evaluated_once_more(hold, folder):
    # --eval-every 3 evaluates rounds 3, 6 and the last one. Resuming a run of 4 adds 4: no figure may differ where
    # both have one.
    line = f"{BASE} --eval-every 3"
    assert hold(f"{line} --rounds 7 --out whole").code == 0
    assert hold(f"{line} --rounds 4 --out a").code == 0
    assert hold(f"{line} --rounds 7 --out a --resume").code == 0
    assert ["accuracy" in row for row in folder("whole").metrics] == [False, False, True, False, False, True, True]
    for mine, theirs in zip(folder("a").same, folder("whole").same, strict=True):
        assert {k: v for k, v in mine.items() if k in theirs} == theirs
    assert folder("a").bits == folder("whole").bits


# Options


def test_bernoulli_cohorts(hold):
    # decisions.md 9: --cohort "bernoulli(0.1)"; of 20 clients at 0.3, between 1 and 20, and not always as many.
    done = hold(f"{BASE} --cohort 'bernoulli(0.3)' --rounds 10 --json")
    sizes = [row["clients"] for row in done.rows[:-1]]
    assert done.code == 0 and 1 <= min(sizes) < max(sizes) <= 20
    assert 30 <= sum(sizes) <= 90  # 60 expected, standard deviation 6.5


def test_a_tiny_probability_does_not_hang(monkeypatch, hold):
    # product.md, complaint 6: what hangs. A cohort is never empty, and drawing again until one comes takes for ever.
    def late(number, frame):
        raise TimeoutError("drawing the cohort of bernoulli(1e-9) takes more than 3 seconds")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(3)
    try:
        done = hold(f"{BASE} --cohort 'bernoulli(1e-9)' --rounds 1")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    assert "TimeoutError" not in done.err
    assert done.code in (0, 2)


def test_steps_replace_epochs(hold):
    done = hold(f"{BASE} --steps 3 --json")
    assert [row["steps"] for row in done.rows[:-1]] == [15] * 4


def test_steps_and_epochs_together_are_not_taken_in_silence(hold):
    # Run.steps: "local steps a round, instead of epochs". One of two given options would be dropped.
    done = hold(f"{BASE} --steps 3 --epochs 5")
    assert done.code == 2 or "epochs" in done.err


def test_drop_last_leaves_out_partial_batches(hold, folder):
    # Client sizes come from split.json; 20 clients of floor(1437 / 20) = 71 samples: 3 whole batches of 20, not 4.
    # 5 clients a round, 5 epochs.
    assert [row["steps"] for row in hold(f"{BASE} --json").rows[:-1]] == [100] * 4
    assert [row["steps"] for row in hold(f"{BASE} --drop-last --json").rows[:-1]] == [75] * 4
    assert [row["steps"] for row in hold(f"{BASE} --epochs 2 --batch 71 --json").rows[:-1]] == [10] * 4


def test_a_run_in_which_nobody_trains_is_told(hold):
    # --drop-last with a batch larger than every client: no step is ever taken. A user has to hear that.
    done = hold(f"{BASE} --drop-last --batch 500")
    assert done.code != 0 or "drop-last" in done.err or "no client" in done.err + done.out


def test_server_lr(hold, folder):
    # server: w <- w + lr u (parts/server.py): 0.5 halves the first step, and 1 adds no part.
    assert hold(f"{BASE} --rounds 1 --out a").code == 0
    assert hold(f"{BASE} --rounds 1 --server-lr 0.5 --out b").code == 0
    assert hold(f"{BASE} --rounds 1 --method 'server(lr=0.5)' --out c").code == 0
    assert hold(f"{BASE} --rounds 1 --server-lr 1 --out d").code == 0
    assert folder("b").same == folder("c").same and folder("a").same == folder("d").same
    assert folder("b").bits["server/w"] == folder("c").bits["server/w"] != folder("a").bits["server/w"]


def test_server_lr_beside_a_server_optimiser(hold):
    # adam has an lr of its own; whatever is decided, it is told or done, and no traceback.
    done = hold(f"{BASE} --method fedadam --server-lr 0.5")
    assert done.code in (0, 2) and "unexpected" not in done.err


def test_lr_decay(hold):
    # decisions.md 9: the factor from round to round: lr 0.1, 0.05, 0.025, 0.0125.
    rows = hold(f"{BASE} --lr-decay 0.5 --json").rows[:-1]
    assert [row["lr"] for row in rows] == [0.1, 0.05, 0.025, 0.0125]


def test_eval_every(hold):
    # Every so many rounds and after the last.
    rows = hold(f"{BASE} --rounds 5 --eval-every 2 --json").rows[:-1]
    assert ["accuracy" in row for row in rows] == [False, True, False, True, True]


def test_eval_every_changes_nothing_else(hold, folder):
    assert hold(f"{BASE} --model \"cnn(norm='bn', width=2)\" --out a").code == 0
    assert hold(f"{BASE} --model \"cnn(norm='bn', width=2)\" --eval-every 4 --out b").code == 0
    assert folder("a").bits == folder("b").bits


def test_seeds_differ(hold, folder):
    assert hold(f"{BASE} --seed 0 --out a").code == 0
    assert hold(f"{BASE} --seed 1 --out b").code == 0
    assert folder("a").bits["server/w"] != folder("b").bits["server/w"]
    assert (folder("a").path / "split.json").read_bytes() != (folder("b").path / "split.json").read_bytes()


def test_a_large_seed(hold, folder):
    # Run: a seed is a whole number from 0 to 2^64 - 1; seeds that differ in their high half are different ones.
    for name, seed in (("a", 2**63 + 1), ("b", 1)):
        assert hold(f"{BASE} --rounds 1 --seed {seed} --out {name}").code == 0
        assert hold(f"run --resume --rounds 2 --out {name}").code == 0
    assert folder("a").bits["server/w"] != folder("b").bits["server/w"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_neighbouring_large_seeds_differ():
    # plan.generator: a stream for every seed. Above 2^63 a list of Python ints becomes float64, which merges seeds.
    from holdfast.data.plan import generator

    draws = [generator(seed, "cohort", 0).random() for seed in (2**63 + 1, 2**63 + 2, 2**64 - 2, 2**64 - 1)]
    assert len(set(draws)) == 4


def test_a_stored_split_gives_the_same_run(hold, folder):
    # Issue 2, 4: splits are stored with their hash and loaded back.
    assert hold(f"{BASE} --method scaffold --out a").code == 0
    line = f"{BASE.replace(shlex.quote(OPTIONS['split']), 'a/split.json')} --method scaffold --out b"
    assert "a/split.json" in line and hold(line).code == 0
    equal(folder("a"), folder("b"))
    assert (folder("a").path / "split.json").read_bytes() == (folder("b").path / "split.json").read_bytes()


def test_a_run_on_a_stored_split_resumes_when_that_file_is_gone(hold, folder):
    # The run's folder has its own split.json: everything needed to repeat it.
    assert hold(f"{BASE} --out a").code == 0
    (folder("a").path / "split.json").rename(folder("a").path.parent / "mine.json")
    assert hold(f"{BASE} --split mine.json --rounds 2 --out b").code == 0
    (folder("a").path.parent / "mine.json").unlink()
    assert hold("run --out b --resume --rounds 4").code == 0
    equal(folder("a"), folder("b"))


@pytest.mark.parametrize("place", ["päth with spaces", "a😀b", 'quo"te'])
def test_a_split_file_in_a_folder_with_an_odd_name(hold, folder, place):
    # run.toml is TOML whatever a path holds; TOML 1.0 knows no surrogate escapes.
    assert hold(f"{BASE} --out a").code == 0
    there = folder(place).path
    there.mkdir()
    (folder("a").path / "split.json").rename(there / "split.json")
    words = [*shlex.split(BASE), "--split", f"{place}/split.json", "--rounds", "2", "--out", f"{place}/b"]
    assert hold(words).code == 0
    done = hold(["run", "--resume", "--rounds", "4", "--out", f"{place}/b"])
    assert done.code == 0, done.err
    equal(folder(f"{place}/b"), folder("a"))


# What is the user's own


USER = """
import numpy as np
from torch import nn

def data(n=200, features=6):
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, n)
    x = draw.normal(size=(n, features)).astype("float32") + y[:, None]
    return x[:150], y[:150], x[150:], y[150:]

def model(shape, classes, width=8):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], width), nn.ReLU(), nn.Linear(width, classes))
"""


def test_model_and_data_from_a_file_in_the_current_folder(hold, folder, module):
    # Issue 2, 4: any package.module:callable.
    name = module(USER)
    line = f"run --threads 1 --split 'iid(clients=5)' --cohort 5 --data '{name}:data(n=220)' --rounds 5"
    done = hold(f"{line} --model '{name}:model(width=16)' --method feddc --out a")
    assert done.code == 0, done.err
    assert folder("a").metrics[-1]["accuracy"] > 0.6
    assert hold("run --resume --out a --rounds 6").code == 0
    for model in ("mlp(hidden=4)", "logreg"):
        assert hold(f"{line} --model '{model}'").code == 0


def test_module_in_the_current_folder_for_the_installed_command(module, tmp_path):
    # As above with the console script's way in, where sys.path[0] is not the current folder.
    name = module(USER)
    code = "import sys; from holdfast.cli import main; sys.exit(main())"
    line = f"run --threads 1 --rounds 1 --split 'iid(clients=5)' --cohort 2 --data {name}:data --model {name}:model"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {SOURCE!r}); {code}", *shlex.split(line)],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_changed_data_file_is_noticed_on_resume(hold, module, folder, tmp_path):
    # results.resumed: the facts tell what a run began with.
    name = module(USER)
    line = f"run --threads 1 --split 'iid(clients=5)' --cohort 2 --data {name}:data --model logreg --out a"
    assert hold(f"{line} --rounds 1").code == 0
    sys.modules.pop(name)
    (tmp_path / f"{name}.py").write_text(USER.replace("default_rng(0)", "default_rng(12345)"))
    done = hold(f"{line} --rounds 2 --resume")
    assert done.code == 2 and "data" in done.err and "Traceback" not in done.err


def test_fedper_reports_personal_accuracy(hold, folder):
    # decisions.md 6: personal evaluation is every client's own model; mean, spread and worst decile.
    done = hold(f"{BASE} --method fedper --model 'mlp(hidden=16)' --rounds 6 --json --out a")
    *rows, last = done.rows
    assert all({"personal_accuracy", "personal_sd", "personal_worst_decile"} <= set(row) for row in rows)
    assert "accuracy" not in rows[-1] and "best_personal_accuracy" in last["summary"]
    assert rows[-1]["personal_worst_decile"] <= rows[-1]["personal_accuracy"] <= 1
    assert "personal accuracy" in hold(f"{BASE} --method fedper --model 'mlp(hidden=8)'").out


# The catalogue and the help


def test_parts_lists_every_part_and_preset(hold):
    # Issue 2, 5: a plain list.
    done = hold("parts")
    words = set(done.out.replace("(", " ").split())
    assert done.code == 0 and set(REGISTRY) <= words and set(PRESETS) <= words


def test_parts_as_json(hold):
    rows = hold("parts --json").rows
    assert {row["part"] for row in rows if "part" in row} == set(REGISTRY)
    assert {row["preset"] for row in rows if "preset" in row} == set(PRESETS)
    for row in (row for row in rows if "part" in row or "preset" in row):  # what is listed can be given to --method
        beside = f"{row['beside']} + " if row.get("beside") else ""  # some parts change what another makes
        assert str(hf.parse(beside + row.get("text", row.get("preset"))))


@pytest.mark.parametrize("command", ["", "run", "parts"])
def test_help_has_an_example(hold, command):
    # product.md: every command has --help with an example.
    done = hold(f"{command} --help")
    assert done.code == 0 and f"holdfast {command}".strip() in done.out.partition("example")[2] and not done.err


def test_every_option_has_a_help_text_and_a_default(hold):
    # A user finds every field of Run in --help.
    out = hold("run --help").out
    for name in hf.Run.__dataclass_fields__:
        assert f"--{name.replace('_', '-')}" in out


@pytest.mark.parametrize("line", ["import holdfast", "from holdfast.parser import parser_of; parser_of()"])
def test_nothing_heavy_is_imported_before_it_is_needed(line):
    # decisions.md 11: the command line imports lazily.
    code = (
        f"{line}; import sys; heavy = {{'torch', 'numpy', 'safetensors'}} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": SOURCE}, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_help_is_fast_because_it_needs_no_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    for words in (["--help"], ["run", "--help"], ["parts", "--help"], ["--version"], ["run", "--nope"]):
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words], cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": f"{tmp_path}:{SOURCE}"},
        )  # fmt: skip
        assert "torch was imported" not in done.stderr and done.returncode == (2 if "--nope" in words else 0)


# From Python


def test_python_equals_the_command_line(hold, folder):
    # product.md: hf.run is the Python side of `holdfast run`: the same options, the same bits.
    assert hold(f"{BASE} --method 'scaffold + specgrad(r=0.05)' --out a").code == 0
    seen = []
    result = hf.run(**OPTIONS, method="scaffold + specgrad(r=0.05)", out="b", each=seen.append)
    equal(folder("a"), folder("b"))
    assert seen == result.metrics == folder("b").metrics and result.done
    kept = hf.run(**OPTIONS, method=hf.parse("specgrad(r=0.05) + scaffold"))  # nothing kept, a Method for a text
    strip = [{k: v for k, v in row.items() if not k.endswith("_seconds")} for row in kept.metrics]
    assert strip == folder("a").same and kept.folder is None
    again = hf.run(**{**OPTIONS, "rounds": 5}, method="scaffold + specgrad(r=0.05)", out="b", resume=True)
    assert [row["round"] for row in again.metrics] == [1, 2, 3, 4, 5]


def test_python_takes_a_data_set_a_split_and_a_module(hold, folder):
    # Run: texts may be the objects they stand for; the facts tell on resume whether they are the same ones.
    import torch

    from holdfast.data.sets import digits

    data = digits()
    clients = tuple(torch.arange(i, len(data.y), 10).numpy() for i in range(10))
    split = Split("mine", clients, 0)

    def model():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

    objects: dict = {"data": data, "split": split, "threads": 1, "cohort": 5}
    hf.run(**objects, model=model(), rounds=4, out="whole")
    hf.run(**objects, model=model(), rounds=2, out="a")
    hf.run(**objects, model=model(), rounds=4, out="a", resume=True)
    equal(folder("a"), folder("whole"))
    other = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with pytest.raises(hf.Refused, match="start"):
        hf.run(**objects, model=other, rounds=5, out="a", resume=True)
    with pytest.raises(hf.Refused, match="data"):  # from the command line, the objects are not there
        hf.run(out="a", resume=True, rounds=5)


def test_a_module_that_was_given_is_not_trained(hold):
    # Federations of one module must not influence each other.
    import torch

    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 10))
    before = {k: v.clone() for k, v in module.state_dict().items()}
    first = hf.run(**{**OPTIONS, "model": module, "rounds": 2})
    second = hf.run(**{**OPTIONS, "model": module, "rounds": 2})
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items()) and module.training
    assert [row["accuracy"] for row in first.metrics] == [row["accuracy"] for row in second.metrics]


def test_python_names_an_unknown_option():
    # The Python side of "did you mean": a misspelt option names itself.
    with pytest.raises((TypeError, hf.Refused), match="methd"):
        hf.run(methd="fedavg")  # type: ignore[call-arg]


def test_torch_global_state_is_left_alone():
    # A library call changes nobody's random numbers and nobody's default dtype.
    import torch

    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    hf.run(**{**OPTIONS, "rounds": 1, "dtype": "float64"})
    assert torch.equal(torch.rand(3), wanted) and torch.get_default_dtype() == torch.float32


def test_python_run_leaves_the_number_of_threads_as_it_was():
    import torch

    torch.set_num_threads(2)
    try:
        hf.run(**{**OPTIONS, "rounds": 1})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


# Being interrupted


def wait_for(path, text, seconds=30.0):
    until = time.time() + seconds
    while time.time() < until:
        if path.exists() and text in path.read_text():
            return
        time.sleep(0.01)
    raise AssertionError(f"no {text!r} in {path} after {seconds} s")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_run_that_resume_continues(forks, hold, folder, tmp_path, number):
    # product.md: "Ctrl-C leaves a run that --resume continues", exit code 1; SIGTERM is what a cluster sends.
    line = f"{BASE} --method scaffold --rounds 150 --checkpoint-every 1000"
    pid = forks.start(f"{line} --out a", tmp_path)
    wait_for(tmp_path / "log.out", "round    3")
    os.kill(pid, number)
    assert forks.wait(pid) == 1
    said, out = (tmp_path / "log.err").read_text(), (tmp_path / "log.out").read_text()
    reached = int([text for text in out.splitlines() if text.startswith("round")][-1].split()[1])
    assert "--resume" in said and f"round {reached} of 150" in said and "Traceback" not in said
    assert [p.name for p in folder("a").checkpoints] == [f"{reached:08d}"]
    assert hold(f"{line} --out a --resume").code == 0
    assert hold(f"{line} --out whole").code == 0
    equal(folder("a"), folder("whole"))


def test_a_second_ctrl_c_stops_at_once(forks, hold, folder, tmp_path):
    # results.patience: the first waits for the round's end, the second does not; the last checkpoint is whole.
    line = f"{BASE} --method scaffold --steps 200 --engine loop --rounds 3 --checkpoint-every 1"
    pid = forks.start(f"{line} --out a", tmp_path)
    wait_for(tmp_path / "log.out", "round    1")
    os.kill(pid, signal.SIGINT)
    wait_for(tmp_path / "log.err", "again")
    os.kill(pid, signal.SIGINT)
    assert forks.wait(pid) == 1
    said = (tmp_path / "log.err").read_text()
    assert "stopped" in said and "--resume" in said and "Traceback" not in said
    assert hold(f"{line} --out a --resume").code == 0
    assert hold(f"{line} --out whole").code == 0
    equal(folder("a"), folder("whole"))


def test_two_processes_do_not_write_into_one_folder(forks, tmp_path):
    # Started twice by mistake (a cluster's requeue does it): both append to metrics.jsonl and each removes the other's
    # half-written checkpoint. The second one has to be refused.
    pid = forks.start(f"{BASE} --rounds 5000 --checkpoint-every 1000 --out a", tmp_path)
    wait_for(tmp_path / "log.out", "round    2")
    second = forks.start("run --out a --resume", tmp_path, log="second")
    time.sleep(1.5)
    forks.kill(pid)
    assert forks.kill(second) == 2, (tmp_path / "second.err").read_text()


def test_json_of_an_interrupted_run_says_so(forks, tmp_path):
    pid = forks.start(f"{BASE} --rounds 3000 --json --out a", tmp_path)
    wait_for(tmp_path / "log.out", '"round": 2,')
    os.kill(pid, signal.SIGINT)
    assert forks.wait(pid) == 1
    last = json.loads((tmp_path / "log.out").read_text().splitlines()[-1])
    assert last["done"] is False and last["summary"]["rounds"] < 3000


def test_stdout_closed_early_gives_no_traceback(tmp_path):
    # `holdfast run ... | head -1`: one line is read, then the pipe is closed. No traceback, and the run can go on.
    line = f"{sys.executable} -m holdfast {BASE} --rounds 30 --out a | head -1"
    done = subprocess.run(
        line, shell=True, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": SOURCE}
    )
    assert done.stdout.startswith("round    1") and len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", [["parts"], ["parts", "--json"], ["run", "--help"]])
def test_stdout_closed_before_anything_is_read(tmp_path, words):
    # `holdfast parts | true`: what is still in the buffer is flushed when Python ends, and that must not complain.
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words], stdout=write, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": SOURCE}, cwd=tmp_path,
        )  # fmt: skip
    finally:
        os.close(write)
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    assert done.returncode in (0, 1)
