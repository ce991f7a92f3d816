"""Real CIFAR-10 from its files to a trained round: seconds of decoding, splitting, augmenting and a round of ResNet-20.

    python bench/cifar_round.py [--write]

The images are those beside the project ($HOLDFAST_SHARED, else ../shared/data), decoded anew and compared with their
checksum. The setting is the papers' but for its rounds: 100 clients of `dirichlet(alpha=0.1, rule='recycled')`, 10 of
them for one local epoch in batches of 50, crop and flip as in FL-Simulator. Augmentation is a part of the round; it is
timed once more by itself. All is done once, as a CI would do it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from holdfast.data.sets import Dataset
from holdfast.experiment import Run, ready
from holdfast.simulate import Federation, State, advance, gather, sample

sys.path.append(str(Path(__file__).parents[1] / "tests" / "data"))
beside = importlib.import_module("shared")  # which knows the packing of the data beside the project

RESULTS = Path(__file__).with_name("results") / "cifar-round.json"
SETTING: dict[str, Any] = {
    "split": "dirichlet(alpha=0.1, clients=100, rule='recycled')", "augment": "fl_simulator",
    "normalize": "fl_simulator_cifar10", "model": "resnet20",
    "method": "fedavg + specgrad(r=0.05) + clip + wd(wd=0.001)",
    "cohort": 10, "epochs": 1, "batch": 50, "lr": 0.1, "rounds": 1, "seed": 0,
}  # fmt: skip
ASKED = 120.0  # seconds in all


def decoded() -> Dataset:
    y, parts = beside.labels("cifar10"), dict[str, np.ndarray]()
    for part, pieces in (("train", ("train_0", "train_1")), ("test", ("test",))):
        pixels = beside.strips([beside.shared(f"cifar10_{piece}.zip") for piece in pieces])
        if hashlib.sha256(pixels.tobytes()).hexdigest() != str(y[f"{part}_sha256"]):
            sys.exit(f"the {part} images are not those of CIFAR-10")
        parts[part] = np.ascontiguousarray(np.moveaxis(pixels, -1, 1))
    return Dataset.of(parts["train"], y["train_y"], parts["test"], y["test_y"], name="cifar10")


def augmented(fed: Federation, state: State) -> float:
    """Seconds of the round's batches by themselves, client by client."""
    cohort = gather(fed, state, 0, sample(fed.seed, 0, len(fed.clients), fed.cohort))
    began = time.perf_counter()
    for k in range(len(cohort.ids)):
        for s in range(cohort.index.shape[1]):
            fed.feed(cohort.index[k, s], cohort.live[k, s], cohort.keys[k], s)
    return time.perf_counter() - began


def measured() -> dict[str, Any]:
    began = time.perf_counter()
    data = decoded()
    read = time.perf_counter()
    made = ready(Run(data=data, **SETTING))
    dealt = time.perf_counter()
    state = State.of(made.federation)
    row = advance(made.federation, state, last=True)
    ended = time.perf_counter()
    found = {
        "decode": read - began, "split and plan": dealt - read, "round": row["train_seconds"],
        "evaluation": row["eval_seconds"], "in all": ended - began,
        "augmentation, in the round": augmented(made.federation, State.of(made.federation)),
    }  # fmt: skip
    seconds = {key: round(value, 2) for key, value in found.items()}
    plan = {"engine": made.plan.engine, "lanes": made.plan.lanes, "threads": made.plan.threads}
    learned = {"steps": row["steps"], "train loss": round(row["train_loss"], 4), "accuracy": row["accuracy"]}
    return {**plan, "seconds": seconds, **learned, "asked": ASKED, "met": found["in all"] <= ASKED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace {RESULTS}")
    parser.add_argument("--busy", action="store_true", help="run on a busy machine too, and say so; never with --write")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    about = {
        "command": "python bench/cifar_round.py --write", "load": load, "cores": os.cpu_count(),
        "torch": torch.__version__, "precision": "fp32", "work": SETTING,
    }  # fmt: skip
    print(about)
    if beside.SHARED is None:
        sys.exit("CIFAR-10 is not beside the project; name its folder by HOLDFAST_SHARED")
    if load > 0.5 and (options.write or not options.busy):
        sys.exit("the machine is busy: these figures would mean nothing; wait until the load is below 0.5")
    found = measured()
    print(found)
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(f'{{"about": {json.dumps(about)},\n"rows": [\n{json.dumps(found)}\n]}}\n')


if __name__ == "__main__":
    main()
