"""What Ray adds to a round, against `batched` on the same work, and what a second worker saves on two cores.

    python bench/overhead.py [--write]

Every row runs the same rounds (same clients, batches, start, lanes; evaluation counted apart) by `batched` in this
process and by `ray` with one and with two workers, interleaved, each with one thread; the figures are medians of the
ratios within one turn. All three must end with the same bits. Beside it: milliseconds of an empty call to a worker, and
of a megabyte put into the shared memory and copied out of it. It refuses to run on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from holdfast.data.sets import Dataset
from holdfast.execute.batched import Batched
from holdfast.execute.cluster import Cluster, connect, package
from holdfast.execute.shards import Ray
from holdfast.execute.workers import Pool
from holdfast.experiment import Run, ready
from holdfast.simulate import Federation, State, rounds

RESULTS = Path(__file__).with_name("results") / "overhead.json"
ROWS = [  # method, model, shape of a sample, clients a round, lanes, local epochs
    ("fedavg", "logreg", (1, 8, 8), 16, 4, 1),
    ("fedavg", "mlp", (1, 28, 28), 16, 4, 5),
    ("scaffold", "mlp", (1, 28, 28), 16, 4, 5),
    ("fedavg", "cnn", (1, 28, 28), 16, 4, 2),
]
TURNS, ROUNDS, BATCH, SAMPLES = 5, 2, 20, 60


def federation(method: str, model: str, shape: tuple[int, ...], cohort: int, lanes: int, epochs: int) -> Federation:
    draw, many = np.random.default_rng(0), 2 * cohort * SAMPLES
    x, y = draw.normal(size=(many, *shape)).astype("float32"), draw.integers(0, 10, many)
    data = Dataset.of(x, y, x[:100], y[:100], classes=10)
    run = Run(
        method, data, f"iid(clients={2 * cohort})", model, cohort=cohort, batch=BATCH, epochs=epochs, engine="batched",
        lanes=lanes, threads=1, eval_every=10**6,
    )  # fmt: skip
    return ready(run).federation


def timed(fed: Federation, execute) -> tuple[float, torch.Tensor]:
    """Seconds of training a round (the last round's evaluation is counted apart), and the model."""
    fed, state = replace(fed, execute=execute), State.of(fed)
    took = [row["train_seconds"] for row in rounds(fed, state, ROUNDS)]
    return statistics.mean(took), state.server.w


def row(pools: dict[int, Pool], method: str, model: str, shape: tuple[int, ...], cohort: int, lanes: int, epochs: int):
    fed = federation(method, model, shape, cohort, lanes, epochs)
    engines = {"batched": fed.execute, **{f"ray {n}": shared(fed, lanes, pool) for n, pool in pools.items()}}
    turns: list[dict[str, float]] = []
    for _ in range(TURNS + 1):
        found = {name: timed(fed, execute) for name, execute in engines.items()}
        weights = [w for _, w in found.values()]
        assert all(torch.equal(weights[0], w) for w in weights), "the engines differ"
        turns.append({name: seconds for name, (seconds, _) in found.items()})
    turns = turns[1:]  # the first turn warms up

    def ratio(a: str, b: str) -> float:
        return round(statistics.median(turn[a] / turn[b] for turn in turns), 3)

    return {
        "method": method, "model": model, "shape": shape, "cohort": cohort, "lanes": lanes, "epochs": epochs,
        "parameters": fed.task.layout.size, "batched seconds": round(statistics.median(t["batched"] for t in turns), 4),
        "ray with 1 worker over batched": ratio("ray 1", "batched"),
        "ray with 2 workers over batched": ratio("ray 2", "batched"),
        "speed of 2 workers over 1": ratio("ray 1", "ray 2"),
    }  # fmt: skip


class Fixed(Ray):
    """By workers that are there already, so that one and two can take turns."""

    def started(self, feed):
        ray = package()
        if not self.sent:
            wanted = {"batched": Batched(self.method, self.task, self.lanes), "feed": feed}
            self.sent = {key: (value, ray.put(value)) for key, value in wanted.items()}
        assert self.pool
        return self.pool


def shared(fed: Federation, lanes: int, pool: Pool) -> Ray:
    return Fixed(fed.method, fed.task, lanes, pool=pool)


def wire(pool: Pool) -> dict[str, float]:
    """Of an empty call to a worker and back, and of putting and getting arrays."""
    ray, worker = package(), pool.idle[0]
    empty, mega = [], []
    block = torch.zeros(16 * 2**18)  # 16 MB
    for _ in range(20):
        began = time.perf_counter()
        ray.get(worker.about.remote())
        empty.append(time.perf_counter() - began)
        began = time.perf_counter()
        ray.get(ray.put(block)).clone()
        mega.append((time.perf_counter() - began) / 16)
    return {name: round(1e3 * statistics.median(took), 3) for name, took in (("call ms", empty), ("ms a MB", mega))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace {RESULTS}")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    torch.set_num_threads(1)
    about = {
        "command": "python bench/overhead.py --write", "load": load, "threads": 1, "cores": os.cpu_count(),
        "machine": platform.machine(), "torch": torch.__version__, "precision": "fp32",
        "work": f"{SAMPLES} samples a client, batch {BATCH}; ratios of seconds of training a round",
    }  # fmt: skip
    if load > 0.5:
        print(about)
        sys.exit("the machine is busy: these ratios would mean nothing; wait until the load is below 0.5")
    pools = ready_pools()
    about |= {"ray": package().__version__, "one worker": wire(pools[1])}
    print(about)
    found = []
    for wanted in ROWS:
        found.append(row(pools, *wanted))
        print(found[-1], flush=True)
    if options.write:
        lines = ",\n".join(json.dumps(r) for r in found)
        RESULTS.write_text(f'{{"about": {json.dumps(about)},\n"rows": [\n{lines}\n]}}\n')


def ready_pools() -> dict[int, Pool]:
    """One worker, and two others: an idle one takes no time from those that work."""
    connect(Cluster(workers=3))
    pools = {n: Pool(Cluster(workers=n)) for n in (1, 2)}
    for n, pool in pools.items():
        pool.grow()
        while len(pool.names) < n:
            pool.hear([])
    return pools


if __name__ == "__main__":
    main()
