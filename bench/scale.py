"""The constants of docs/scale.md: what a method costs a client and round, and what many clients cost the server.

    python bench/scale.py [--write]

`sheet`: bytes by the data sheet. `table`: milliseconds to read and write the rows of a cohort in a table of 10^4 to
10^6 clients that have all taken part, to draw a cohort, and to add up a stack. `runs`: three rounds of SCAFFOLD with
10^4, 10^6 and 10^7 clients, whose bytes must be what the formulas of the page say.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from holdfast.data.plan import sample
from holdfast.experiment import Run, ready
from holdfast.memory import Memory
from holdfast.round import open_memory
from holdfast.simulate import State, rounds
from holdfast.vector import leaves

RESULTS = Path(__file__).with_name("results") / "scale.json"
METHODS = ("fedavg", "scaffold", "feddyn + specgrad", "fedsmoo", "fedeve + gh")
MODEL, COHORT, ROUNDS, TIMES = "logreg", 100, 3, 20


def made(method: str, clients: int) -> Any:
    data = f"synthetic(alpha=1, beta=1, clients={clients})"
    run = Run(method, data, "own()", MODEL, rounds=ROUNDS, cohort=COHORT, epochs=1, engine="batched", threads=1)
    return ready(run).federation


def sheet(method: str) -> dict[str, Any]:
    costs = made(method, 1000).sheet
    return {"method": method} | {k: getattr(costs, k) for k in ("model", "down", "up", "memory", "state", "individual")}


def median(call: Callable[[int], Any]) -> float:
    """Milliseconds; the first call warms up."""
    took = []
    for i in range(TIMES + 1):
        began = time.perf_counter()
        call(i)
        took.append(time.perf_counter() - began)
    return round(1e3 * statistics.median(took[1:]), 3)


def table(clients: int) -> dict[str, Any]:
    fed = made("scaffold", 1000)
    memory = Memory(open_memory(fed.method, fed.task, clients))
    began = time.perf_counter()
    memory.make(list(range(clients)))
    grown = time.perf_counter() - began
    ids = [sample(0, t, clients, COHORT).tolist() for t in range(TIMES + 1)]
    rows = memory.rows(ids[0])
    stack = torch.randn(COHORT, fed.task.layout.length)
    return {
        "clients": clients, "cohort": COHORT, "bytes": sum(t.nbytes for t in leaves(memory.table)),
        "read ms": median(lambda i: memory.rows(ids[i])), "write ms": median(lambda i: memory.store(ids[i], rows)),
        "draw ms": median(lambda i: sample(0, i, clients, COHORT)), "grow all s": round(grown, 3),
        "sum ms": median(lambda i: torch.ones(COHORT) @ stack),
    }  # fmt: skip


def run(clients: int) -> dict[str, Any]:
    began = time.perf_counter()
    fed = made("scaffold", clients)
    state = State.of(fed)
    built = time.perf_counter() - began
    found = list(rounds(fed, state, ROUNDS))
    held = len(state.memory.places)
    stored = sum(t.nbytes for t in leaves(state.memory.state()[1]))
    seen = len(set().union(*(sample(0, t, clients, COHORT).tolist() for t in range(ROUNDS))))
    padded = fed.task.layout.length * 4
    right = {
        "bytes down": found[-1]["bytes_down"] == COHORT * fed.sheet.down,
        "bytes up": found[-1]["bytes_up"] == found[-1]["trained"] * fed.sheet.up,
        "rows": held == seen, "row bytes": stored == held * padded,
    }  # fmt: skip
    assert all(right.values()), right
    return {
        "clients": clients, "cohort": COHORT, "rounds": ROUNDS, "built s": round(built, 3), "rows": held,
        "row bytes": stored, "bytes down": found[-1]["bytes_down"], "bytes up": found[-1]["bytes_up"],
        "round s": round(statistics.median(row["train_seconds"] for row in found), 4), "formulas hold": True,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace {RESULTS}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    about = {
        "command": "python bench/scale.py --write", "load": load, "threads": 1, "cores": os.cpu_count(),
        "machine": platform.machine(), "torch": torch.__version__, "model": f"{MODEL} on synthetic(1, 1)",
    }  # fmt: skip
    print(about)
    if options.write and load > 0.5:
        sys.exit("the machine is busy: seconds would mean nothing; wait until the load is below 0.5")
    found = {
        "sheet": [sheet(method) for method in METHODS],
        "table": [table(10**n) for n in (4, 5, 6)],  # the last is 2.6 GB
        "runs": [run(10**n) for n in (4, 6, 7)],
    }
    for name, lines in found.items():
        print(name, *lines, sep="\n  ")
    if options.write:
        body = ",\n".join(f'"{k}": [\n' + ",\n".join(json.dumps(r) for r in v) + "\n]" for k, v in found.items())
        RESULTS.write_text(f'{{"about": {json.dumps(about)},\n{body}}}\n')


if __name__ == "__main__":
    main()
