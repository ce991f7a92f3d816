"""How many times faster than `loop` the batched executor is here; writes the table that `--engine auto` reads.

    python bench/engines.py [--write]

Each row times the same round (same clients, batches and start) in both executors, in interleaved pairs, and takes the
median of the pairs' ratios. It refuses to run on a busy machine, because one foreign process distorts such ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

from holdfast.data.plan import sample
from holdfast.data.sets import Dataset
from holdfast.execute import Cohort
from holdfast.execute.auto import LANES
from holdfast.execute.batched import Batched
from holdfast.execute.loop import Loop
from holdfast.experiment import Run, ready
from holdfast.round import Down, cast
from holdfast.simulate import Federation, State, gather

TABLE = Path(__file__).parents[1] / "src/holdfast/execute/engines.json"
ROWS = [
    *(("logreg", (n,), k) for n in (64, 784) for k in (10, 50)),
    *(("mlp", (n,), k) for n in (64, 784) for k in (10, 50)),
    *(("cnn", shape, k) for shape in ((1, 8, 8), (1, 28, 28), (3, 32, 32)) for k in (10, 50)),
    *(("resnet20", shape, 10) for shape in ((1, 8, 8), (3, 32, 32))),
]
PAIRS, BATCH, EPOCHS, STEPS = 10, 20, 5, 10  # a client has 40 samples


def federation(model: str, shape: tuple[int, ...], cohort: int) -> Federation:
    draw = np.random.default_rng(0)
    many = cohort * BATCH * STEPS // EPOCHS
    x, y = draw.normal(size=(many, *shape)).astype("float32"), draw.integers(0, 10, many)
    data = Dataset.of(x, y, x[:20], y[:20], classes=10)
    run = Run(
        data=data, split=f"iid(clients={cohort})", model=model, cohort=cohort, batch=BATCH, epochs=EPOCHS, engine="loop"
    )
    return ready(run).federation


def prepared(fed: Federation) -> tuple[Down, Cohort]:
    state = State.of(fed)
    ids = sample(0, 0, len(fed.clients), fed.cohort)
    return cast(fed.method, state.server, torch.tensor(0.1)), gather(fed, state, 0, ids)


def ratio(model: str, shape: tuple[int, ...], cohort: int) -> dict:
    fed = federation(model, shape, cohort)
    down, now = prepared(fed)
    engines = (Loop(fed.method, fed.task), Batched(fed.method, fed.task, min(cohort, LANES)))
    pairs: list[tuple[float, float]] = []
    for _ in range(PAIRS + 1):
        took = []
        for engine in engines:
            began = time.perf_counter()
            engine(fed.options, down, now, fed.feed)
            took.append(time.perf_counter() - began)
        pairs.append((took[0], took[1]))
    pairs = pairs[1:]  # the first pair warms up
    step = statistics.median(loop for loop, _ in pairs) / (cohort * STEPS)
    found = statistics.median(loop / batched for loop, batched in pairs)
    size = int(np.prod(shape))
    return {"model": model, "size": size, "cohort": cohort, "ratio": round(found, 2), "loop_ms": round(1e3 * step, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace {TABLE}")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"load {load:.2f}, {torch.get_num_threads()} threads, torch {torch.__version__}, {platform.processor()}")
    if load > 0.5:
        sys.exit("the machine is busy: these ratios would mean nothing; wait until the load is below 0.5")
    rows = []
    for model, shape, cohort in ROWS:
        rows.append(ratio(model, shape, cohort))
        print(rows[-1], flush=True)
    if options.write:
        about = {
            "measures": f"batched over loop, fp32, eager, batch {BATCH}, {STEPS} steps, lanes min(cohort, 64)",
            "command": "python bench/engines.py --write", "threads": torch.get_num_threads(),
            "torch": torch.__version__, "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        }  # fmt: skip
        lines = ",\n".join(json.dumps(row) for row in rows)
        TABLE.write_text(f'{{"about": {json.dumps(about)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
