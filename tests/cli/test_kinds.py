"""A run's folder is no comparison's, and the other way round; whoever mixes them up is told the right command."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SMALL = "--data digits --split iid(clients=4) --model logreg --rounds 1 --cohort 2 --epochs 1"


def refused(done, *words: str) -> None:
    assert done.code == 2 and all(word in done.err for word in words), done.err


def test_mixed_up_folders(hold):
    hold(f"run {SMALL} --out a")
    hold(f"compare {SMALL} --methods fedavg --seeds 1 --out c")
    refused(hold("run --out c --resume"), "no run.toml", "holdfast compare --out c --resume")
    refused(hold("compare --out a --resume"), "no compare.toml", "holdfast run --out a --resume")
    refused(hold(f"compare {SMALL} --methods fedavg --out c"), "holds a comparison", "--resume")
    done = hold(f"compare {SMALL} --methods fedavg --out a")
    refused(done, "not an empty folder", "choose another --out")
    assert "--resume" not in done.err  # which would be refused next


def test_a_folder_where_a_file_is_expected(hold):
    hold(f"run {SMALL} --out a")
    refused(hold("run a --out b"), "give a/run.toml")
    refused(hold(["run", *SMALL.split(), "--out", ""]), "--out", "empty")


def test_unknown_names_hide_no_wrong_values(hold, tmp_path):
    (tmp_path / "e.toml").write_text('method = "fedporx"\nlrr = 0.1\nlr = -1\n')
    refused(hold("run e.toml --out a"), "line 1", "'fedporx'", "line 2", "'lrr'", "line 3", "lr=-1")
    (tmp_path / "c.toml").write_text('methods = ["fedporx"]\nsede = 1\nlr = -1\n')
    refused(hold("compare c.toml --out a"), "'fedporx'", "line 2", "'sede'", "lr=-1")


def test_the_command_on_the_page_repeats_the_comparison(hold):
    """After --resume as well, when the words of the command line say nothing of what was asked."""
    hold(f"compare {SMALL} --methods 'fedavg; scaffold' --seeds 1 --out c")
    hold("compare --out c --resume")
    assert "holdfast compare c/compare.toml --out c-again" in re.sub("<[^>]*>", "", Path("c/report.html").read_text())
    assert hold("compare c/compare.toml --out c-again").code == 0
    kept = [re.sub(r'"\w+_seconds": [^,}]*', "", Path(at, "comparison.json").read_text()) for at in ("c", "c-again")]
    assert kept[0] == kept[1]


def test_classes_that_nobody_has_are_told(hold, module):
    name = module("import numpy as np\nx = np.zeros((40, 4))\ny = np.arange(40) % 3 + 1\ndef data(): return x, y, x, y")
    done = hold(f"run --data {name}:data --split iid(clients=2) --model logreg --cohort 2 --rounds 1")
    assert done.code == 0 and "labels that no sample has: 0;" in done.err


@pytest.fixture
def unchangeable(tmp_path):
    """A folder in which not even root can make a file, as on a disk that is mounted read-only."""
    place = tmp_path / "c"
    place.mkdir()
    if not shutil.which("chattr") or subprocess.run(["chattr", "+i", place], capture_output=True).returncode:
        pytest.skip("this file system knows no unchangeable folders")
    subprocess.run(["chattr", "-i", place], check=True)
    yield place
    subprocess.run(["chattr", "-i", place], check=True)


def test_a_comparison_that_cannot_be_written(hold, unchangeable):
    unchangeable.rmdir()
    assert hold(f"compare {SMALL} --methods fedavg --seeds 1 --out c").code == 0

    def content():
        return {path: path.read_bytes() for path in unchangeable.rglob("*") if path.is_file()}

    before = content()
    subprocess.run(["chattr", "+i", unchangeable], check=True)
    refused(hold("compare --out c --resume"), "cannot write to", "--out")
    assert content() == before
