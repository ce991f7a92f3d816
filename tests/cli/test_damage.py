"""A damaged folder is refused with the file and the reason, before anything in it is touched."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.data.splits import Split

BASE = "run --threads 1 --split 'iid(clients=10)' --cohort 2 --model logreg --epochs 1"
COMPARE = "compare --threads 1 --split 'iid(clients=10)' --cohort 2 --model logreg --epochs 1 --rounds 2 --seeds 2"


@pytest.fixture
def ran(hold, folder):
    """A run of 5 rounds in d, its only checkpoint after the last: --checkpoint-every is 10."""
    assert hold(f"{BASE} --rounds 5 --out d").code == 0
    return folder("d")


@pytest.fixture
def compared(hold):
    assert hold(f"{COMPARE} --methods 'fedavg; fedprox' --out c").code == 0
    return Path("c")


def refused(hold, ran, *words, line="run --out d --resume --rounds 6"):
    """Exit 2, every word said, no Python in it, and not a byte changed."""
    before = ran.content
    done = hold(line)
    assert done.code == 2, f"{done.code}: {done.err}"
    assert not [word for word in words if word not in done.err], done.err
    assert not [leak for leak in ("__init__", "Errno", "Traceback", "unexpected", "KeyError") if leak in done.err]
    assert ran.content == before and "resumed" not in done.err
    return done


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


# The checkpoint


def test_a_file_in_place_of_the_checkpoints(hold, ran):
    shutil.rmtree(ran.path / "checkpoint")
    (ran.path / "checkpoint").write_text("mine")
    refused(hold, ran, "d/checkpoint", "folder", "--out")


def test_an_emptied_folder_of_checkpoints(hold, ran):
    # Five rows of five rounds: the last round has always had a checkpoint, so somebody removed it.
    shutil.rmtree(ran.path / "checkpoint")
    for make in (lambda: None, lambda: (ran.path / "checkpoint").mkdir()):
        make()
        refused(hold, ran, "d/checkpoint", "rows of 5 rounds", "another --out")


def test_rounds_that_had_no_checkpoint_yet_are_trained_anew_and_that_is_said(hold, ran, folder):
    # What a kill after three rounds of five leaves: three rows, and no checkpoint before round 5.
    shutil.rmtree(ran.path / "checkpoint")
    path = ran.path / "metrics.jsonl"
    whole = ran.same
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    done = hold("run --out d --resume")
    assert done.code == 0 and "rounds 1 to 3 will be trained anew" in done.err, done.err
    assert ran.same == whole


def test_a_file_in_place_of_the_newest_checkpoint(hold, folder):
    # It is named, the one before it is used, and the next one can be written where it stands.
    assert hold(f"{BASE} --rounds 4 --checkpoint-every 2 --out d").code == 0
    newest = folder("d").checkpoints[-1]
    shutil.rmtree(newest)
    newest.write_text("mine")
    done = hold("run --out d --resume")
    assert done.code == 0 and "00000004" in done.err and "round 2" in done.err, done.err
    assert [p.is_dir() for p in folder("d").checkpoints] == [True, True]


@pytest.mark.parametrize("text", ["{}", "[]", "3", "null", '{"version": 1}'])
def test_a_checkpoint_without_its_facts(hold, ran, text):
    (ran.checkpoints[-1] / "state.json").write_text(text)
    refused(hold, ran, "00000005", "state.json lacks", "sha256")


# run.toml


def test_an_option_that_is_missing_or_misspelt(hold, ran):
    path = ran.path / "run.toml"
    change(path, "lr = 0.1\n", "")
    refused(hold, ran, "run.toml lacks lr")
    change(path, "[run]\n", "[run]\nlrr = 0.1\n")
    refused(hold, ran, "run.toml lacks lr", "no option 'lrr'; did you mean lr?", "line")
    change(path, "epochs = 1\n", "")
    refused(hold, ran, "lacks lr", "lacks epochs or steps", "'lrr'")


def test_a_file_of_an_older_version_stays_readable(hold, ran):
    # Without the table of its writer, a file is held to the options that there were before files had one; an option
    # that came later has its default. `FIRST` names those of then.
    from holdfast.recorded import FIRST

    path = ran.path / "run.toml"
    text = path.read_text()
    path.write_text(text[: text.index("\n[writer]")])
    assert {"lr", "finetune", "device"} <= set(FIRST)
    assert hold("run --out d --resume --rounds 6").code == 0
    assert "\n[writer]" in path.read_text()


def test_an_option_that_came_after_a_file_was_written_has_its_default(hold, ran, monkeypatch):
    # The file lists what there was: one name less, and its absence is no damage. With the name listed it is.
    import holdfast.recorded as recorded

    path = ran.path / "run.toml"
    change(path, "finetune = 0\n", "")
    refused(hold, ran, "lacks finetune")
    monkeypatch.setattr(recorded, "FIRST", tuple(name for name in recorded.FIRST if name != "finetune"))
    refused(hold, ran, "lacks finetune")
    change(path, '"finetune", ', "")
    assert hold("run --out d --resume --rounds 6").code == 0


TAIL = 'dtype = "float32"\ndevice = "cpu"\ntorch'  # as [plan] goes on, and [run] does not
PLANS = [
    ("lanes = 2", "lanes = -3", "lanes=-3"),
    ("lanes = 2", 'lanes = "x"', "lanes='x'"),
    (f"threads = 1\n{TAIL}", f"threads = -3\n{TAIL}", "threads=-3"),
    (f"threads = 1\n{TAIL}", f"threads = 9\n{TAIL}", "threads=9", "[run]"),
    ('engine = "batched"', 'engine = "warp"', "engine='warp'", "loop, batched"),
    ('device = "cpu"\ntorch', 'device = "cuda"\ntorch', "device='cuda'", "[run]"),
    ('device = "cpu"\ntorch', "device = 3\ntorch", "device=3"),
    (f"compile = false\nthreads = 1\n{TAIL}", f"compile = true\nthreads = 1\n{TAIL}", "compile=True", "[run]"),
    ("torch = ", "torch = 3 #", "torch=3"),
    ("lanes = 2", "lans = 2", "'lans'; did you mean lanes?", "lacks lanes"),
]


@pytest.mark.parametrize(("old", "new", "words"), [(o, n, w) for o, n, *w in PLANS], ids=[p[1] for p in PLANS])
def test_a_plan_that_no_run_has(hold, ran, tmp_path, old, new, words):
    change(ran.path / "run.toml", old, new)
    refused(hold, ran, "run.toml", *words)
    refused(hold, ran, "run.toml", *words, line="run d/run.toml --out new")
    assert not (tmp_path / "new").exists()


def test_all_that_is_wrong_in_the_plan_at_once(hold, ran):
    change(ran.path / "run.toml", "lanes = 2", "lanes = -3")
    change(ran.path / "run.toml", 'engine = "batched"', 'engine = "warp"')
    change(ran.path / "run.toml", "lr = 0.1", "lr = -1")
    refused(hold, ran, "lanes=-3", "engine='warp'", "lr=-1")


@pytest.mark.parametrize(("text", "words"), [("", "[run]"), ("[run]\nlr = 0.1\n", "[plan]"), ("lr = = 1", "not TOML")])
def test_a_run_toml_cut_short(hold, ran, text, words):
    (ran.path / "run.toml").write_text(text)
    refused(hold, ran, "d/run.toml", words, "--out")


@pytest.mark.parametrize("key", ["split", "data_dir", "augment", "data"])
def test_a_number_in_place_of_a_text(hold, ran, key):
    text = (ran.path / "run.toml").read_text()
    line = next(line for line in text.splitlines() if line.startswith(f"{key} = "))
    change(ran.path / "run.toml", line, f"{key} = 3")
    refused(hold, ran, "run.toml, line", "3")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("name", ["", "checkpoint"])
def test_a_folder_that_cannot_be_written(hold, ran, name):
    (ran.path / name).chmod(0o555)
    refused(hold, ran, "cannot write", "d")
    (ran.path / name).chmod(0o755)


def test_a_wrong_method_names_its_file(hold, ran):
    change(ran.path / "run.toml", 'method = "fedavg"', 'method = "fedporx"')
    refused(hold, ran, "d/run.toml, line", "'fedporx'", "fedprox")


def test_a_missing_run_toml(hold, ran, tmp_path):
    (ran.path / "run.toml").unlink()
    done = refused(hold, ran, "d", "no run.toml", "restore it")
    assert "leave --resume out" not in done.err
    (tmp_path / "e").mkdir()
    assert "leave --resume out" in hold("run --out e --resume").err
    (tmp_path / "e" / "thesis.tex").write_text("mine")
    done = hold("run --out e --resume")
    assert done.code == 2 and "leave --resume out" not in done.err and "give the folder" in done.err


# metrics.jsonl


@pytest.mark.parametrize(
    "damage, words",
    [(b"[1]\n", "line 2"), (b"\xff\xfe\n", "line 2 is not UTF-8"), (b'{"round": 1}\n', "line 2"), (b"{\n", "line 2")],
)
def test_damaged_rows(hold, ran, damage, words):
    path = ran.path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + damage + b"".join(lines[2:]))
    refused(hold, ran, "d/metrics.jsonl", words)


def test_a_folder_in_place_of_the_rows(hold, ran):
    (ran.path / "metrics.jsonl").unlink()
    (ran.path / "metrics.jsonl").mkdir()
    refused(hold, ran, "d/metrics.jsonl", "file")


@pytest.mark.parametrize("name", ["run.toml", "metrics.jsonl", "split.json"])
@pytest.mark.parametrize("damage", ["binary", "gone"])
def test_one_damaged_run_stops_no_other(hold, compared, name, damage):
    # The run counts as failed, by name; its neighbours are as they were, and the run that was missing is done.
    path = compared / "fedavg" / "seed-0" / name
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"\xff\xfe")
    shutil.rmtree(compared / "fedprox" / "seed-1")
    kept = {p: p.read_bytes() for p in (compared / "fedavg").rglob("*") if p.is_file()}
    done = hold("compare --out c --resume")
    table = json.loads((compared / "comparison.json").read_text())["table"]
    if (name, damage) == ("split.json", "gone"):  # made anew from its seed and checked by its hash
        assert done.code == 0 and table[0]["seeds"] == "2", done.err
    else:
        assert done.code == 1 and "fedavg, seed 0" in done.err and name in done.err, done.err
        assert table[0]["seeds"] == "1 (1 failed)" and table[1]["seeds"] == "2"
        assert {p: p.read_bytes() for p in (compared / "fedavg").rglob("*") if p.is_file()} == kept


def test_the_report_of_a_run_without_its_rows(hold, ran):
    # Resuming cannot help: the rounds are done.
    (ran.path / "metrics.jsonl").unlink()
    done = refused(hold, ran, "metrics.jsonl", "restore it", line="report d -o r.html")
    assert "--resume" not in done.err


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("seeds = ", "seedz = ", ["line", "'seedz'", "did you mean seed", "lacks seeds"]),
        ("lr = 0.1\n", "", ["lacks lr"]),
        ("rounds = 2", 'rounds = "x"', ["line", "rounds='x'"]),
    ],
)
def test_a_damaged_compare_toml(hold, compared, folder, old, new, words):
    change(compared / "compare.toml", old, new)
    refused(hold, folder("c"), "compare.toml", *words, line="compare --out c --resume")


# split.json


@pytest.mark.parametrize("key, value", [("text", "other"), ("seed", 7), ("counts", [[1]]), ("seal", "0")])
def test_all_of_split_json_is_sealed(hold, ran, key, value):
    path = ran.path / "split.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    refused(hold, ran, "split.json", "damaged")
    refused(hold, ran, "split.json", "damaged", line="report d -o r.html")


def test_the_report_verifies_the_hash_of_a_split(hold, ran):
    path = ran.path / "split.json"
    stored = json.loads(path.read_text())
    stored["clients"][0].reverse()
    path.write_text(json.dumps(stored))
    refused(hold, ran, "split.json", "hash", line="report d -o r.html")


def test_a_split_without_a_seal_is_an_older_one(ran):
    path = ran.path / "split.json"
    stored = json.loads(path.read_text())
    del stored["seal"]
    path.write_text(json.dumps(stored))
    assert Split.load(path).hash == stored["hash"]


def test_a_split_file_that_is_not_there(hold):
    done = hold(f"{BASE} --split nofile.json")
    assert done.code == 2 and "nofile.json" in done.err and "Errno" not in done.err


def test_what_is_not_finite_in_a_trajectory():
    from holdfast.testing import trajectory

    a = torch.tensor([[1.0, 2.0]])
    bad = torch.tensor([[float("nan"), 2.0]])
    for arguments in ((bad, a), (a, bad)):
        with pytest.raises(hf.Refused, match="not finite"):
            trajectory("fedavg", *arguments, torch.zeros(2), rounds=1, steps=1, lr=0.1)
    with pytest.raises(hf.Refused, match="cohort is empty"):
        trajectory("fedavg", a, a, torch.zeros(2), rounds=1, steps=1, lr=0.1, cohort=[])
