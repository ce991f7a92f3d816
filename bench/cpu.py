"""Whole FedAvg runs on this CPU: what `--engine auto` picks, against the ordinary sequential loop of `eager.py`.

    python bench/cpu.py [--write]

Both do the same work in fp32: the same clients, batches, start, and an evaluation a round. Interleaved pairs, median of
their ratios; the two must also agree on the accuracies. It refuses to run on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from eager import train

from holdfast.data.sets import Dataset
from holdfast.experiment import Ready, Run, ready
from holdfast.models.zoo import build
from holdfast.simulate import State, rounds

RESULTS = Path(__file__).with_name("results") / "cpu.json"
DIGITS = (1, 8, 8)
ROWS = [  # model, shape of a sample, clients a round, local epochs, rounds, least ratio that the project asks for
    ("logreg", DIGITS, 10, 5, 4, 0.9),
    ("mlp", DIGITS, 10, 5, 4, 2.0),
    ("mlp", DIGITS, 50, 5, 2, 6.0),
    ("cnn", DIGITS, 10, 5, 2, 1.2),
    ("cnn", DIGITS, 50, 5, 1, 0.9),
    ("cnn", (1, 28, 28), 10, 5, 1, 0.9),
    ("cnn", (3, 32, 32), 10, 5, 1, 0.9),
    ("resnet20", DIGITS, 10, 5, 1, 0.9),
    ("resnet20", (3, 32, 32), 10, 1, 1, 0.9),
]
PAIRS, BATCH, SAMPLES = 10, 20, 60


def made(model: str, shape: tuple[int, ...], cohort: int, epochs: int) -> Ready:
    draw, many = np.random.default_rng(0), 2 * cohort * SAMPLES
    x, y = draw.normal(size=(many, *shape)).astype("float32"), draw.integers(0, 10, many)
    data = Dataset.of(x, y, x[:100], y[:100], classes=10)
    split = f"iid(clients={2 * cohort})"
    return ready(Run(data=data, split=split, model=model, cohort=cohort, batch=BATCH, epochs=epochs))


def row(model: str, shape: tuple[int, ...], cohort: int, epochs: int, many: int, least: float) -> dict:
    run = made(model, shape, cohort, epochs)
    fed = run.federation
    module, x = build(model, {}, shape, 10, fed.seed), fed.data.prepare(fed.data.x, torch.float32)
    pairs: list[tuple[float, float]] = []
    ours, theirs = list[float](), list[float]()
    for _ in range(PAIRS + 1):
        began = time.perf_counter()
        theirs = train(module, fed, x, many)
        between = time.perf_counter()
        ours = [r["accuracy"] for r in rounds(fed, State.of(fed), many)]
        pairs.append((between - began, time.perf_counter() - between))
    found = statistics.median(eager / auto for eager, auto in pairs[1:])  # the first pair warms up
    cold = pairs[0][0] / pairs[0][1]
    return {
        "model": model, "shape": shape, "cohort": cohort, "epochs": epochs,
        "engine": run.plan.engine, "lanes": run.plan.lanes,
        "ratio": round(found, 2), "cold": round(cold, 2), "asked": least, "met": found >= least,
        "largest accuracy difference": round(max(abs(a - b) for a, b in zip(ours, theirs, strict=True)), 4),
        "eager seconds": round(statistics.median(e for e, _ in pairs[1:]), 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace {RESULTS}")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    about = {
        "command": "python bench/cpu.py --write", "load": load, "threads": torch.get_num_threads(),
        "cores": os.cpu_count(), "torch": torch.__version__, "precision": "fp32",
        "work": f"{SAMPLES} samples a client, batch {BATCH}, evaluation every round",
    }  # fmt: skip
    print(about)
    if load > 0.5:
        sys.exit("the machine is busy: these ratios would mean nothing; wait until the load is below 0.5")
    found = []
    for wanted in ROWS:
        found.append(row(*wanted))
        print(found[-1], flush=True)
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        lines = ",\n".join(json.dumps(r) for r in found)
        RESULTS.write_text(f'{{"about": {json.dumps(about)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
