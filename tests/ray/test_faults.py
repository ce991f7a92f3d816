"""Workers that are killed, and runs that are: every round gives the same bits, and nothing is left behind."""

import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from holdfast.errors import Failed, Refused
from holdfast.execute.cluster import package
from holdfast.execute.shards import Ray
from holdfast.execute.workers import TRIES, pool_of
from holdfast.experiment import Run, ready
from holdfast.laboratory import Lab, batched, same
from holdfast.simulate import State, rounds
from holdfast.task import Task
from holdfast.text import parse
from holdfast.vector import leaves

SOURCE = Path(__file__).parents[2] / "src"
LANES, EVERYBODY = 2, range(5)
METHOD = parse("scaffold")


def pids(cluster):
    """Of the worker processes that live, as they say themselves by a call of Ray."""
    ray, found = package(), []
    for worker in pool_of(cluster).names:
        try:
            found.append(ray.get(worker.about.remote())["pid"])
        except ray.exceptions.RayActorError:
            continue
    return found


def killing(marker, once):
    """The laboratory's batches; while the marker is there, whoever asks for one dies (by value to the workers)."""
    lab = Lab(dtype=torch.float32)

    def feed(index, live, *_):
        if marker.exists():
            if once:
                marker.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return lab.feed(index, live)

    return feed


def fed_by(other, cluster):
    """An engine of the laboratory that takes its batches from elsewhere."""

    def engine(method, task):
        executor = Ray(method, task, LANES, cluster=cluster)

        def execute(options, down, cohort, feed):
            return executor(options, down, cohort, other)

        return execute

    return engine


def test_a_worker_that_dies_in_mid_shard_is_replaced(cluster, tmp_path):
    # The marker is taken away by the first worker that asks for a batch, which then dies: in mid-round, always.
    lab, marker, two = Lab(dtype=torch.float32), tmp_path / "die", cluster(2)
    first = lab.first(METHOD)
    wanted = lab.round(METHOD, first, 0, batched(LANES), ids=EVERYBODY)
    marker.touch()
    found = lab.round(METHOD, first, 0, fed_by(killing(marker, once=True), two), ids=EVERYBODY)
    assert not marker.exists()
    same(wanted, found, 0, "a round that lost a worker")
    news = pool_of(two).news
    assert len(news) == 1 and "was lost in round 1, its clients (" in news[0]
    news.clear()


@pytest.mark.processes
def test_clients_that_end_every_worker_end_the_run(cluster, tmp_path):
    lab, marker = Lab(dtype=torch.float32), tmp_path / "die"
    marker.touch()
    with pytest.raises(Failed, match=f"{TRIES} workers were lost, each while it computed clients"):
        lab.round(METHOD, lab.first(METHOD), 0, fed_by(killing(marker, once=False), cluster(2)), ids=EVERYBODY)
    pool_of(cluster(2)).news.clear()


@pytest.mark.processes
def test_killed_at_random_moments_in_six_rounds(cluster):
    # Issue 9: one of several worker processes is killed at a random moment of every round; the run ends with the bits
    # of an undisturbed `batched` run, client memory included, and a line says what happened.
    options = {"method": "feddyn", "cohort": 12, "epochs": 3, "lanes": 2, "threads": 1, "model": "mlp", "rounds": 6}
    begun = {engine: ready(Run(engine=engine, workers=3, **options)).federation for engine in ("batched", "ray")}
    states = {engine: State.of(fed) for engine, fed in begun.items()}
    list(rounds(begun["batched"], states["batched"], 6))
    draw, three, kills, remarks = random.Random(9), cluster(3), [], []
    pool_of(three).ready()
    took = 1.0
    for t in range(1, 7):
        victim, delay = draw.choice(pids(three)), draw.uniform(0, took)
        killer = threading.Timer(delay, os.kill, (victim, signal.SIGKILL))
        killer.start()
        began = time.perf_counter()
        remarks += [row["remark"] for row in rounds(begun["ray"], states["ray"], t) if "remark" in row]
        took = min(took, time.perf_counter() - began)
        killer.join()
        kills.append(victim)
    both = zip(*(leaves((s.server, s.memory.table)) for s in states.values()), strict=True)
    assert all(torch.equal(a, b) for a, b in both)
    told = " ".join(remarks)
    print(f"{len(kills)} kills; remarks: {remarks}")
    # The last kill may have come after the last shard; every other was noticed in its round or before the next.
    assert all(f"worker {pid} on" in told for pid in kills[:-1])


def test_a_worker_that_goes_between_rounds_is_replaced(cluster):
    lab, two = Lab(dtype=torch.float32), cluster(2)
    engine = partial(Ray, lanes=LANES, cluster=two)
    states = lab.run(METHOD, engine, rounds=1, ids=EVERYBODY)
    victim = pids(two)[0]
    os.kill(victim, signal.SIGKILL)
    found = lab.round(METHOD, states[0], 1, engine, ids=EVERYBODY)
    same(lab.run(METHOD, batched(LANES), rounds=2, ids=EVERYBODY)[-1], found, 0, "after a worker had gone")
    assert any(str(victim) in said for said in pool_of(two).news)
    pool_of(two).news.clear()


def test_a_module_that_workers_cannot_import_is_named(cluster, tmp_path, monkeypatch):
    # It lies where only this process looks, as a module does that was not copied to all machines.
    hidden = tmp_path / "elsewhere"
    hidden.mkdir()
    (hidden / "only_here.py").write_text("import torch\nclass Net(torch.nn.Linear):\n    pass\n")
    monkeypatch.syspath_prepend(str(hidden))
    import only_here  # pyright: ignore

    executor = Ray(METHOD, Task.of(only_here.Net(4, 3)), LANES, cluster=cluster(2))
    with pytest.raises(Refused, match=r"No module named 'only_here'.*must be importable there"):
        executor.start(Lab().feed)


def started(line, cwd):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    environment.pop("RAY_ADDRESS", None)
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", *shlex.split(line)], cwd=cwd, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def below(pid):
    """Process ids of everything that a process has started, and they in turn."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_a_run_that_is_stopped_leaves_no_process_and_goes_on_elsewhere(tmp_path, number):
    # Resumed by `batched` with the lanes of the plan, it has the bits of a run that never saw Ray.
    line = "run --method scaffold --cohort 4 --epochs 1 --lanes 2 --threads 1 --model logreg --checkpoint-every 1"
    process = started(f"{line} --engine ray --workers 2 --rounds 500 --out a", tmp_path)
    assert process.stdout
    for _ in range(3):
        assert "round" in process.stdout.readline(), process.communicate()
    others = below(process.pid)
    assert len(others) > 2  # Ray's own and two workers
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does, to all of them
    else:
        process.kill()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == (1 if number == signal.SIGINT else -9), said
    end = time.monotonic() + 100  # Ray's agents look now and then whether they are still wanted
    while (left := [pid for pid in others if running(pid)]) and time.monotonic() < end:
        time.sleep(0.2)
    assert not left, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
    done = len((tmp_path / "a" / "metrics.jsonl").read_text().splitlines())
    more = done + 2
    text = (tmp_path / "a" / "run.toml").read_text()
    (tmp_path / "a" / "run.toml").write_text(text.replace("rounds = 500", f"rounds = {more}"))
    for words in (f"{line} --resume --engine batched --out a", f"{line} --engine batched --rounds {more} --out b"):
        process = started(words, tmp_path)
        assert process.wait(120) == 0, process.communicate()
    blobs = [(tmp_path / name / "checkpoint" / f"{more:08d}" / "state.safetensors").read_bytes() for name in "ab"]
    assert blobs[0] == blobs[1]
