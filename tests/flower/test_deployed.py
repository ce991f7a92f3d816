"""Flower's own processes: the simulation, and a real federation over TLS with node keys, with what goes wrong there.

Each message costs a Python process at the node, so recipes are as small as they can be.
"""

import pytest

pytest.importorskip("flwr", reason="needs the extra: pip install holdfast[flower]", exc_type=ImportError)

import os
import signal
import subprocess
import sys
import time

from nodes import FIVE, SPLIT
from test_messages import loop, same, weights

from holdfast import rows
from holdfast.flower import keys
from holdfast.flower.start import Deployment, deployment, end
from holdfast.report.gather import load

pytestmark = pytest.mark.processes
OPTIONS = ["--model", "mlp", "--rounds", "3", "--epochs", "1", "--lr", "0.05", "--cohort", "2", "--eval-every", "3"]
PATIENCE = 900.0  # seconds for a run; far more than it takes
FULL = {"cohort": 3, "eval_every": 3}


def holdfast(*words):
    done = subprocess.run([sys.executable, "-m", "holdfast", *words], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    """What the first two commands of the docs make."""
    app = tmp_path / "fed"
    holdfast("flower", "init", str(app), "--method", "scaffold", "--split", SPLIT, *OPTIONS)
    holdfast("flower", "keys", str(app), "--nodes", "3")
    return app


def gone(made: Deployment):
    """Every child, and every group of processes that one of them led."""
    for child in made.children.values():
        with pytest.raises(ProcessLookupError):
            os.killpg(child.pid, 0)
    return all(child.poll() is not None for child in made.children.values())


def begun(made: Deployment, *places: int):
    made.link()
    made.register()
    for place in places:
        made.node(place)


def until(ready, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.2)


def done(made, name):
    path = made.folder / name / "metrics.jsonl"
    return len(rows.read(path, "")) if path.exists() else 0


def test_three_commands_start_a_federation(folder):
    """The loop's weights, with the same split and seed; a page can be made of its folder; no process stays."""
    said = holdfast("flower", "start", str(folder))
    assert "3 SuperNodes over TLS" in said and "3 rounds done" in said
    assert same(weights(folder / "run"), loop("scaffold", cohort=2).w)
    assert load(folder / "run").finished
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(folder) not in left


def test_five_methods_in_the_simulation(folder):
    with deployment(folder, simulate=True) as made:
        made.link()
        for i, method in enumerate(FIVE):
            out = folder / f"run-{i}"
            assert made.watch(made.run(method=method, out=str(out)), PATIENCE) == "finished:completed"
            assert same(weights(out), loop(method, cohort=2).w), method
    assert gone(made)


def test_five_methods_deployed(folder):
    with deployment(folder) as made:
        begun(made, 0, 1, 2)
        for i, method in enumerate(FIVE):
            out = folder / f"run-{i}"
            assert made.watch(made.run(method=method, out=str(out)), PATIENCE) == "finished:completed"
            assert same(weights(out), loop(method, cohort=2).w), method
    assert gone(made)


def test_a_killed_node_is_named_and_a_stranger_turned_away(folder, tmp_path):
    """SIGKILL in mid-run, so that it cannot say goodbye; somebody with a key of his own never gets a message."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "pyproject.toml").write_text("")
    keys.write(other, 1)
    with deployment(folder) as made:
        begun(made, 0, 1, 2)
        stranger = made.node(0, "stranger", str(other / "keys" / "node-0.key"))
        run = made.run(method="scaffold", out=str(folder / "run"), policy="deadline(seconds=45)", cohort=3, rounds=3)
        until(lambda: done(made, "run") >= 1)
        os.killpg(made.children["node-2"].pid, signal.SIGKILL)
        assert made.watch(run, PATIENCE) == "finished:completed"
        until(lambda: stranger.poll() is not None, 60)
    found = rows.read(folder / "run" / "metrics.jsonl", "")
    assert [row["round"] for row in found] == [1, 2, 3]
    assert any("2" in row.get("missing", {}) for row in found[1:]) and found[-1]["trained"] == 2
    assert "missing" not in found[0]
    said = (folder / "logs" / "stranger.log").read_text()
    assert "Receiving" not in said and gone(made)


def test_a_killed_server_and_restarted_nodes_lose_nothing(folder):
    """Everything is killed after round 1; started anew, SCAFFOLD ends where an undisturbed run ends."""
    with deployment(folder) as made:
        begun(made, 0, 1, 2)
        made.run()
        until(lambda: done(made, "run") >= 1)
        for child in made.children.values():
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    holdfast("flower", "start", str(folder))
    found = rows.read(folder / "run" / "metrics.jsonl", "")
    assert [row["round"] for row in found] == [1, 2, 3] and not any("lost_memory" in row for row in found)
    assert same(weights(folder / "run"), loop("scaffold", cohort=2).w)
    assert "goes on after round" in (folder / "run" / "server.log").read_text()


SILENT = """
import time

from site_before import test, train as once


def train(site, sites):
    if site == 1:
        time.sleep(3600)
    return once(site, sites)
"""


def test_a_node_that_never_answers(folder):
    """Its own data never come; the deadline goes by, and the round counts without it."""
    with deployment(folder) as made:
        begun(made, 0, 2)
        own = folder / "silent.py"
        own.write_text(SILENT.replace("from site_before", "from site_data"))
        made.start(
            "node-1", "flower-supernode", "--superlink", made.address, "--root-certificates", made.key("ca.pem"),
            "--auth-supernode-private-key", made.key("node-1.key"), "--node-config", f'site-file="{own}"',
        )  # fmt: skip
        run = made.run(method="fedavg", policy="quorum(n=2, seconds=40)", cohort=3, rounds=1)
        assert made.watch(run, PATIENCE) == "finished:completed"
        end(made.children["node-1"], grace=1)  # its own code still sleeps
    assert gone(made)
    row = rows.read(folder / "run" / "metrics.jsonl", "")[0]
    assert row["missing"] == {"1": "no answer in 40 s"} and row["trained"] == 2
