"""Which of our checks catch which mistake: the known ones planted into SCAFFOLD and FedDyn, one at a time.

    python bench/mistakes.py [--quick]

Writes results/mistakes.json and docs/mistakes.md, the same on every run. `--quick` keeps the committed runs on real
data (`collapse.py`), and so does a machine without that data.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "oracles"), str(HERE.parent / "tests" / "golden")]

import collapse  # noqa: E402
from planted import MISTAKES, Mistake  # noqa: E402

from holdfast.testing import trajectory  # noqa: E402

# The tests' own problems and values, by name: they are no package.
golden, hard, oracles, rig = (importlib.import_module(name) for name in ("golden", "_compare", "_run", "rig"))
RESULTS, PAGE = HERE / "results" / "mistakes.json", HERE.parent / "docs" / "mistakes.md"
CHECKS = {  # and what more than which it may not find
    "oracle": 1e-9, "golden": oracles.HALF, "sums": 1e-9, "states": 1e-9, "optimum": 1e-9,
}  # fmt: skip
CURVES, CENTRES, BEGIN = (torch.as_tensor(t) for t in (hard.CURVES, hard.CENTRES, hard.BEGIN))
RATES = [0.07, 0.05, 0.07, 0.03, 0.06, 0.02]  # of the rounds, where an oracle does not fix one
ORACLES = {"scaffold": ("scaffold", {}), "dyn": ("dyn", {"alpha": 0.2})}
MOMENTUM = ("scaffold_momentum", {"beta": 0.5})
ROWS = {"scaffold": "SCAFFOLD", "dyn": "FedDyn"}
# The law: three clients of unequal sizes and steps, one, two or one other of them a round.
LAW_STEPS, LAW_SIZES, LAW_COHORTS, MARKS = [3, 2, 1], [3.0, 1.0, 5.0], [[0, 1], [2], [1, 2], [0]], (20, 200, 2000)


def oracle(mistake: Mistake) -> float:
    """Largest deviation from the oracle on the hard problem of tests/oracles: unequal everything, absent clients."""
    name, options = MOMENTUM if mistake.company else ORACLES[mistake.base]
    method = mistake.method(alpha=0.2, steps=float(hard.STEPS[0]), rate=hard.RATES[0])
    expected = oracles.load(name).trajectory(hard.CURVES, hard.CENTRES, hard.BEGIN, **hard.PROBLEM, **options)
    got = trajectory(method, CURVES, CENTRES, BEGIN, **hard.PROBLEM)
    return float(np.abs(got.numpy() - expected).max())


def printed(mistake: Mistake) -> float | None:
    """Largest deviation from the printed rows on P8: two equal clients, both in every round."""
    if mistake.company:
        return None
    row = golden.LOCAL[ROWS[mistake.base]]
    method = mistake.method(alpha=0.1, steps=float(row["steps"]), rate=golden.LR)
    path = trajectory(method, *hard.P8, rounds=3, steps=row["steps"], lr=golden.LR)
    got = [(path[t - 1][0], path[t - 1][7], path[t - 1].norm()) for t in row["rows"]]
    return float(np.abs(np.array(got) - np.array([*row["rows"].values()])).max())


def rounds(fed: Any) -> Iterator[Any]:
    """The rounds of the hard problem with another lr in each; yields what the clients sent."""
    for t, rate in enumerate(RATES):
        cohort = hard.COHORTS[t % len(hard.COHORTS)]
        yield fed.go({i: hard.STEPS[i] for i in sorted(cohort)}, lr=rate)


def federation(mistake: Mistake, constant: bool = False) -> tuple[Any, str, str]:
    """The hard problem, or clients with constant gradients; the name of the part and of what it keeps."""
    method = mistake.method(alpha=0.2, steps=float(hard.STEPS[0]), rate=RATES[0])
    if constant:
        fed = rig.linears(method, CENTRES, sizes=hard.SIZES)
    else:
        fed = rig.quadratics(method, CURVES, CENTRES, BEGIN, sizes=hard.SIZES)
    own = next(p for p in method.parts if p.name.endswith(mistake.base) or p.name.startswith("wrong_"))
    return fed, own.name, "c" if mistake.base == "scaffold" else "h"


def sums(mistake: Mistake) -> float:
    """Largest distance in any round between the server's variate or dual and the mean over all N of the clients'."""
    fed, name, key = federation(mistake)
    return max(float((fed.memory[name][key].mean(0) - fed.state(name, key)).abs().max()) for _ in rounds(fed))


def states(mistake: Mistake) -> float:
    """Does a client keep what it should? c_i its gradient, where that is constant; h_i the sum of its updates."""
    dual = mistake.base == "dyn"
    fed, name, key = federation(mistake, constant=not dual)
    wanted, worst = torch.zeros_like(CENTRES), 0.0
    for t, ups in enumerate(rounds(fed)):
        ids = sorted(hard.COHORTS[t % len(hard.COHORTS)])
        wanted[ids] = wanted[ids] + ups.delta if dual else CENTRES[ids]
        worst = max(worst, float((fed.memory[name][key] - wanted).abs().max()))
    return worst


def distances(mistake: Mistake) -> list[float]:
    """From the optimum of the mean loss after 20, 200 and 2000 rounds; it ends where it has settled or is lost."""
    method = mistake.method(alpha=1.0, steps=float(LAW_STEPS[0]), rate=0.1)
    a, b = CURVES[:3], CENTRES[:3]
    best, cycle = (a * b).mean(0) / a.mean(0), len(LAW_COHORTS)
    fed = rig.quadratics(method, a, b, BEGIN, sizes=LAW_SIZES)
    path: list[Tensor] = []
    for t in range(MARKS[-1]):
        fed.go({i: LAW_STEPS[i] for i in LAW_COHORTS[t % cycle]})
        path.append(fed.server.w)
        settled = t > 10 * cycle and all((path[-k] - path[-k - cycle]).abs().max() < 1e-12 for k in range(1, cycle + 1))
        if settled or not path[-1].norm() < 1e9:
            break
    return [float((path[min(mark, len(path)) - 1] - best).norm()) for mark in MARKS]


def measured(mistake: Mistake) -> dict[str, Any]:
    """One row: what every check finds, in two digits, which is what machines agree on."""
    away = distances(mistake)
    found = {
        "oracle": oracle(mistake), "golden": printed(mistake), "sums": sums(mistake), "states": states(mistake),
        "optimum": away[-1],
    }  # fmt: skip
    caught = [check for check, bound in CHECKS.items() if (value := found[check]) is not None and not value <= bound]
    shown = {check: said(value) for check, value in found.items()} | {"distances": [said(d) for d in away]}
    return {"base": mistake.base, "mistake": mistake.about, "wrong": mistake.part is not None, "caught": caught} | shown


def said(value: float | None) -> str:
    if value is None:
        return "-"
    if not value <= 1e6:
        return "> 1e6"
    return "0" if value < 1e-9 else f"{value:.1e}"


def quick() -> list[dict[str, Any]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny problems; and one order of summation
    try:
        return [measured(mistake) for mistake in MISTAKES]
    finally:
        torch.set_num_threads(threads)


def page(rows: list[dict[str, Any]], real: dict[str, Any]) -> str:
    names = {"scaffold": "SCAFFOLD", "dyn": "FedDyn"}
    lines = [INTRODUCTION]
    for base, name in names.items():
        lines += [f"## {name}\n", "| mistake | " + " | ".join(CHECKS) + " | distances after 20, 200, 2000 rounds |"]
        lines += ["|---" * (len(CHECKS) + 2) + "|"]
        for row in (r for r in rows if r["base"] == base):
            cells = [f"**{row[check]}**" if check in row["caught"] else row[check] for check in CHECKS]
            about = row["mistake"].replace("|", r"\|")  # a bare one ends the cell
            lines.append(f"| {about} | {' | '.join(cells)} | {', '.join(row['distances'])} |")
        lines.append("")
    return "\n".join([*lines, ALONE, *alone(rows), "", collapse.told(real)])


def alone(rows: list[dict[str, Any]]) -> list[str]:
    """For every check, what nothing else would have caught."""
    single = {check: [r["mistake"] for r in rows if r["caught"] == [check]] for check in CHECKS}
    counts = {check: sum(check in r["caught"] for r in rows) for check in CHECKS}
    wrong = sum(r["wrong"] for r in rows)
    return [
        f"- {check}: {counts[check]} of {wrong}" + (f"; alone: {'; '.join(only)}" if (only := single[check]) else "")
        for check in CHECKS
    ]


INTRODUCTION = """\
# Planted mistakes

Made by `python bench/mistakes.py`; `tests/oracles/test_mistakes.py` asserts it. Each row is the right part but for one
line (`bench/planted.py`); a figure in bold is what the check finds and may not. `0` is below 1e-9.

- **oracle**: the largest deviation from the paper's pseudo-code in NumPy (`tests/oracles`): six clients of unequal
  sizes and steps, some absent, six rounds at a falling lr.
- **golden**: the largest deviation from the printed values on the problem P8, three rounds of two equal clients.
- **sums**: the largest distance between the server's variate and the mean of all c_i, or its dual and the mean of all
  h_i, in any of six rounds with another lr each.
- **states**: the same rounds; c_i must be the client's gradient where that is constant, h_i the sum of its updates.
- **optimum**: the distance to the minimiser of the mean loss where it has settled, at most 2000 rounds; three quadratic
  clients, partial participation, lr 0.1, alpha 1.
"""
ALONE = "## What each check catches\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="keep the committed runs on real data")
    options = parser.parse_args()
    rows, real = quick(), json.loads(RESULTS.read_text())["real"] if RESULTS.exists() else {}
    if options.quick or not collapse.DATA.exists():
        print("runs on real data: kept as committed" + ("" if options.quick else f", for {collapse.DATA} is missing"))
    else:
        real = collapse.measured()
    RESULTS.write_text(json.dumps({"planted": rows, "real": real}, indent=1) + "\n")
    PAGE.write_text(page(rows, real))


if __name__ == "__main__":
    main()
