"""`holdfast run --engine ray` as a user meets it: exit codes, messages, and going on under another engine."""

import os
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast import cli

SOURCE = Path(__file__).parents[2] / "src"
LINE = "run --method scaffold --cohort 4 --epochs 1 --lanes 2 --threads 1 --model logreg"


def hold(line):
    return cli.main(shlex.split(line))


def kept(folder):
    """The newest checkpoint, to the byte."""
    return max(Path(folder, "checkpoint").glob("[0-9]*/state.safetensors")).read_bytes()


@pytest.mark.parametrize("engines", [("batched", "ray"), ("ray", "batched")], ids=" then ".join)
def test_a_run_goes_on_under_the_other_engine(cluster, engines, capfd):
    # docs/ray.md: the same lanes give the same bits, so a checkpoint of one is a checkpoint of the other.
    assert hold(f"{LINE} --engine batched --rounds 4 --out whole") == 0
    assert hold(f"{LINE} --engine {engines[0]} --workers 3 --rounds 2 --out a") == 0
    assert hold(f"{LINE} --engine {engines[1]} --workers 3 --rounds 4 --out a --resume") == 0
    assert kept("a") == kept("whole")
    stored = tomllib.loads(Path("a/run.toml").read_text())
    assert stored["run"]["engine"] == stored["plan"]["engine"] == engines[1]
    assert stored["plan"]["lanes"] == 2
    assert hold("run --out a --resume --rounds 5") == 0  # the file that was written is whole


def test_the_loop_does_not_go_on_by_ray(cluster, capfd):
    assert hold("run --model logreg --engine loop --cohort 4 --rounds 1 --out a") == 0
    before = Path("a/run.toml").read_bytes()
    assert hold("run --out a --resume --engine ray --rounds 2") == 2
    assert "engine is 'loop' in a and 'ray' now" in capfd.readouterr().err
    assert Path("a/run.toml").read_bytes() == before


def test_the_plan_depends_on_no_number_of_workers(cluster, capfd):
    # 10 clients in an eighth each, rounded up: 5 shards of 2 clients (docs/ray.md, `--lanes`).
    plans = []
    for workers in (1, 3):
        assert hold(f"run --model logreg --engine ray --workers {workers} --rounds 1 --out w{workers}") == 0
        plans.append(tomllib.loads(Path(f"w{workers}/run.toml").read_text())["plan"])
    assert plans[0] == plans[1] and plans[0]["lanes"] == 2 and "5 shards of 2 clients" in plans[0]["why"]


def alone(line, tmp_path, before="pass", **environment):
    """In a process of its own, which has no Ray yet."""
    code = f"import sys; {before}; from holdfast.cli import main; sys.exit(main({shlex.split(line)!r}))"
    everything = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=everything, capture_output=True, text=True, timeout=120
    )


def test_without_ray_it_is_refused_with_the_command_that_installs_it(tmp_path):
    done = alone("run --engine ray --out a", tmp_path, before="sys.modules['ray'] = None")
    assert done.returncode == 2 and "pip install 'holdfast[ray]'" in done.stderr
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("by", ["option", "variable"])
def test_an_address_where_nobody_answers_is_refused_at_once(tmp_path, by):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening, so nobody can answer there
        address = f"127.0.0.1:{held.getsockname()[1]}"
        option = f"--ray-address {address}" if by == "option" else ""
        environment = {} if by == "option" else {"RAY_ADDRESS": address}
        done = alone(f"run --engine ray {option} --out a", tmp_path, **environment)
    assert done.returncode == 2 and address in done.stderr and "nothing answers there" in done.stderr
    assert "ray start --head" in done.stderr and not (tmp_path / "a").exists()


def test_options_that_cannot_be_are_told_together(capfd):
    assert hold("run --engine ray --ray-address here --workers -1 --workers-per-gpu 0") == 2
    said = capfd.readouterr().err
    assert all(text in said for text in ("ray-address='here'", "workers=-1", "workers-per-gpu=0", "3 problems"))
