"""A million clients against a thousand: start, memory and rounds of `synthetic(alpha=1, beta=1, samples=50)`.

    python bench/million.py [--write]

logreg, FedAvg and SCAFFOLD, 10 clients a round. Start and memory are of `holdfast run` as a process of its own: seconds
from its start to its first row, and the most memory it ever held, over ROUNDS rounds that are kept in a folder. Rounds
are of both populations in one process, taken by turns, without evaluation: the median of the ratios of PAIRS pairs. It
refuses to run on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from holdfast.experiment import Run, ready
from holdfast.simulate import Federation, State, advance

RESULTS = Path(__file__).with_name("results") / "million.json"
MANY, FEW = 1_000_000, 1_000
METHODS, COHORT = ("fedavg", "scaffold"), 10
STARTS, ROUNDS, PAIRS, WARM = 3, 50, 200, 10
ASKED = {"start seconds": 10.0, "peak MB": 1500.0, "ratio": 1.1}


def data(clients: int) -> str:
    return f"synthetic(alpha=1, beta=1, clients={clients}, samples=50)"


def started(method: str, clients: int) -> tuple[float, float]:
    """Seconds to the first row and peak resident memory in MB, of a run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        line = ["-m", "holdfast", "run", "--data", data(clients), "--split", "own", "--model", "logreg", "--json"]
        line += ["--method", method, "--cohort", str(COHORT), "--rounds", str(ROUNDS), "--out", f"{folder}/run"]
        began = time.perf_counter()
        child = subprocess.Popen([sys.executable, *line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert child.stdout
        first = json.loads(child.stdout.readline())
        took = time.perf_counter() - began
        rest = child.stdout.read().splitlines()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or first["round"] != 1 or len(rest) != ROUNDS:
        sys.exit(f"the run of {method} on {clients} clients ended with {child.returncode}")
    return took, used.ru_maxrss / 1e3 if sys.platform != "darwin" else used.ru_maxrss / 1e6


def seconds(fed: Federation, state: State) -> float:
    began = time.perf_counter()
    advance(fed, state)
    return time.perf_counter() - began


def interleaved(method: str) -> dict[str, Any]:
    runs = [Run(method=method, data=data(n), split="own", model="logreg", cohort=COHORT, eval_every=10**9)
            for n in (MANY, FEW)]  # fmt: skip
    feds = [ready(run).federation for run in runs]
    states = [State.of(fed) for fed in feds]
    pairs: list[tuple[float, float]] = []
    for i in range(PAIRS + WARM):
        order = (0, 1) if i % 2 else (1, 0)
        took = {k: seconds(feds[k], states[k]) for k in order}
        pairs.append((took[0], took[1]))
    kept = pairs[WARM:]
    ratio = statistics.median(many / few for many, few in kept)
    return {
        "engine": ready(runs[0]).plan.engine,
        "round ms": round(1e3 * statistics.median(many for many, _ in kept), 3),
        "round ms of few": round(1e3 * statistics.median(few for _, few in kept), 3),
        "ratio": round(ratio, 3),
        "rows of memory": len(states[0].memory.places), "visits": (PAIRS + WARM) * COHORT,
    }  # fmt: skip


def row(method: str) -> dict[str, Any]:
    found: dict[str, Any] = {"method": method, "clients": MANY, "few": FEW}
    for clients, name in ((MANY, ""), (FEW, " of few")):
        starts = [started(method, clients) for _ in range(STARTS)]
        found[f"start seconds{name}"] = round(statistics.median(took for took, _ in starts), 2)
        found[f"peak MB{name}"] = round(max(held for _, held in starts), 1)
    found |= interleaved(method)
    return found | {"asked": ASKED, "met": all(found[key] <= least for key, least in ASKED.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace {RESULTS}")
    parser.add_argument("--busy", action="store_true", help="run on a busy machine too, and say so; never with --write")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    about = {
        "command": "python bench/million.py --write", "load": load, "threads": torch.get_num_threads(),
        "cores": os.cpu_count(), "torch": torch.__version__, "precision": "fp32",
        "work": f"{data(MANY)}, logreg, {COHORT} clients a round, 5 epochs, batch 20; {ROUNDS} rounds for the memory",
    }  # fmt: skip
    print(about)
    if load > 0.5 and (options.write or not options.busy):
        sys.exit("the machine is busy: these figures would mean nothing; wait until the load is below 0.5")
    found = []
    for method in METHODS:
        found.append(row(method))
        print(found[-1], flush=True)
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        lines = ",\n".join(json.dumps(r) for r in found)
        RESULTS.write_text(f'{{"about": {json.dumps(about)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
