"""Stopped by a closed pipe or Ctrl-C at any moment: what was done is kept, and only what is true is said."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")
ENVIRONMENT = os.environ | {"PYTHONPATH": SOURCE}
BASE = "run --threads 1 --split 'iid(clients=10)' --cohort 2 --model logreg --epochs 1"
COMPARE = "compare --threads 1 --split 'iid(clients=10)' --cohort 2 --model logreg --epochs 1 --rounds 50 --seeds 1"


@pytest.fixture
def bash(tmp_path):
    def call(line, **more):
        text = line.replace("holdfast", f"{shlex.quote(sys.executable)} -m holdfast")
        return subprocess.run(
            ["bash", "-c", text], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, **more
        )

    return call


def test_a_broken_pipe_keeps_the_rounds_that_were_done(bash, folder, hold):
    # As Ctrl-C does: a checkpoint of the last whole round, though one was due only at round 1000.
    done = bash(f"holdfast {BASE} --rounds 300 --checkpoint-every 1000 --out a | head -3")
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr.rstrip().endswith("stopped; --resume goes on") and "Traceback" not in done.stderr
    rounds = len(folder("a").metrics)
    assert 3 <= rounds < 300 and [p.name for p in folder("a").checkpoints] == [f"{rounds:08d}"]
    done = hold("run --out a --resume --json")
    assert done.code == 0 and done.rows[0]["round"] == rounds + 1


def test_a_broken_pipe_without_a_folder(bash):
    done = bash(f"holdfast {BASE} --rounds 300 | head -1")
    assert "--resume" not in done.stderr and "stopped" in done.stderr


def test_a_broken_pipe_stops_a_comparison_that_can_go_on(bash, folder):
    done = bash(f"holdfast {COMPARE} --methods 'fedavg; fedprox' --out c | head -2")
    assert done.stderr.rstrip().endswith("stopped; --resume goes on"), done.stderr
    run = folder("c/fedavg/seed-0")
    assert run.checkpoints[-1].name == f"{len(run.metrics):08d}"
    done = bash("holdfast compare --out c --resume")
    assert done.returncode == 0 and [row["round"] for row in run.metrics] == list(range(1, 51)), done.stderr


def test_both_streams_closed_by_their_reader(bash):
    done = bash(f"holdfast {BASE} --rounds 300 --out a 2>&1 | head -2")
    assert "Traceback" not in done.stdout + done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_closed_by_the_caller(bash, folder, closed):
    # The first file that is opened must not take the place of a closed stream.
    assert bash(f"holdfast parts {closed}").returncode == 0
    done = bash(f"holdfast {BASE} --rounds 2 --out a {closed}")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert [row["round"] for row in folder("a").metrics] == [1, 2]


@pytest.mark.parametrize("delay", [0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
def test_ctrl_c_while_it_starts(tmp_path, delay):
    # No traceback, and no word of a resume where there is nothing to resume.
    begun = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *shlex.split(f"{BASE} --rounds 100000 --out a")],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(delay)
    begun.send_signal(signal.SIGINT)
    said = begun.communicate(timeout=60)[1]
    assert begun.returncode in (1, -signal.SIGINT), said
    resumable = (tmp_path / "a" / "run.toml").exists()
    assert not ("Traceback" in said and SOURCE in said), said  # before our first line, Python itself answers
    assert ("--resume goes on" in said) == resumable, said


def test_ctrl_c_while_the_package_is_imported(tmp_path):
    # At a moment that is no matter of luck: torch is a module that sends the signal.
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise ImportError\n")
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *shlex.split(f"{BASE} --out a")], cwd=tmp_path, capture_output=True,
        text=True, env=os.environ | {"PYTHONPATH": f"{tmp_path}:{SOURCE}"},
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.strip() == "stopped; nothing was written"
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("first", ["argparse", "holdfast/errors"])
def test_ctrl_c_before_the_options_are_read(tmp_path, first):
    # The console script imports holdfast.cli and calls main: nothing else may be imported before its `try`.
    code = (
        "import sys, os, signal\n"
        "class Late:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {first.replace('/', '.')!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "from holdfast.cli import main\n"
        "sys.modules.pop('argparse', None)\n"
        "sys.meta_path.insert(0, Late())\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "parts"], cwd=tmp_path, env=ENVIRONMENT,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "stopped" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_folder_that_was_deleted_under_the_shell(bash):
    # torch's libraries end the process without a word of sense there.
    done = bash(f"mkdir gone; cd gone; rmdir ../gone; holdfast {BASE}")
    assert done.returncode == 2 and "current folder" in done.stderr and "MKL" not in done.stderr, done.stderr
