"""A cluster that was started elsewhere. Its machines are raylets of this one, and come and go while a run goes on."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
LINE = "run --method scaffold --cohort 8 --epochs 2 --lanes 2 --threads 1 --model mlp --rounds 40 --checkpoint-every 40"


@pytest.fixture
def machines(here):
    """A head without a core, so that all computing is done on the nodes that are added."""
    made = importlib.import_module("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    yield made
    made.shutdown()


def started(words, cwd):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", *LINE.split(), *words.split()], cwd=cwd, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.processes
def test_a_machine_is_lost_and_another_comes(machines, tmp_path):
    # Issue 9: "a worker or node lost in mid-round is replaced and the round gives the same bits; elastic size".
    nodes = [machines.add_node(num_cpus=1) for _ in range(2)]
    process = started(f"--engine ray --ray-address {machines.address} --out a", tmp_path)
    assert process.stdout
    for _ in range(3):
        assert "round" in process.stdout.readline(), process.communicate()
    machines.remove_node(nodes[0], allow_graceful=False)
    machines.add_node(num_cpus=1)
    out, said = process.communicate(timeout=150)
    assert process.returncode == 0, said
    assert "was lost in round" in out or "had gone before the round" in out
    other = started("--engine batched --out b", tmp_path)
    assert other.wait(100) == 0, other.communicate()
    end = "checkpoint/00000040/state.safetensors"
    assert (tmp_path / "a" / end).read_bytes() == (tmp_path / "b" / end).read_bytes()
