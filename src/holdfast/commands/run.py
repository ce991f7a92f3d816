"""one experiment"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from holdfast.commands.given import Asked, given, placed
from holdfast.commands.options import EXTRAS, add_file, add_options, folder
from holdfast.errors import Refused

EXAMPLES = """\
examples:
  holdfast run --method "scaffold + specgrad(r=0.05)" --rounds 20 --out runs/a
  holdfast run --data digits --split "dirichlet(alpha=0.1, clients=100)" --model cnn --cohort 10 --epochs 5
  holdfast run --out runs/a --resume --rounds 40
  holdfast run runs/a/run.toml --out runs/b            the same run again, to the same bits
  holdfast run experiment.toml --set rounds=10 --set "method='fedprox(mu=0.1)'"
"""


def add(command: argparse.ArgumentParser) -> None:
    add_file(command)
    text = "a sum of parts and presets (fedavg); 'holdfast parts' lists them"
    command.add_argument("--method", default=argparse.SUPPRESS, help=text)
    add_options(command)
    command.add_argument("--out", type=folder, help="the run's folder; without it nothing is kept")
    command.add_argument("--resume", action="store_true", help="go on with the run in --out")


def command(options: argparse.Namespace) -> int:
    asked = given(options)
    extra = {v.key: v.place for v in asked.layers if v.key in EXTRAS}
    if extra:
        foreign = (f"{place}: '{key}' is an option of holdfast compare, not of run" for key, place in extra.items())
        raise Refused(*asked.problems, *foreign)
    from holdfast.experiment import Run, alone
    from holdfast.live import Live
    from holdfast.results import go

    with placed(asked, alone), Live(options.json) as live:
        run, like = Run(**asked.values), planned(asked, options.experiment)
        result = go(run, options.out, options.resume, set(asked.values), live.tell, live.round, like)
        if result.remark:
            live.tell(result.remark)
    if options.json:
        last = {"summary": result.summary, "split": result.split, "folder": options.out, "done": result.done}
        print(json.dumps(last), flush=True)
    else:
        print(closing(result.summary, options.out), flush=True)
    if not result.done:
        on = "--resume goes on" if options.out else "nothing was kept, for there was no --out"
        print(f"stopped after round {len(result.metrics)} of {result.run.rounds}; {on}", file=sys.stderr)
        return 1
    return 0


def planned(asked: Asked, path: str | None) -> Any:
    """A run.toml that nothing is laid over is repeated with its plan and facts, so to the same bits."""
    from holdfast.recorded import repeated

    return repeated(Path(path)) if path and "plan" in asked.whole and asked.values == asked.file else None


def closing(summary: dict[str, Any], out: str | None) -> str:
    """What the run is judged by; below it, what else was measured in the last evaluated round."""
    from holdfast import headline

    judged = [f"{when}_{name}" for name in headline.METRICS for when in ("best", "last", "last_ten")]
    told = {key: value for key, value in summary.items() if isinstance(value, float)}
    scores = [f"{named(key)} {told.pop(key):.4f}" for key in judged if key in told]
    further = [f"{named(key).removeprefix('last ')} {value:.4f}" for key, value in told.items()]
    plural = "s" if summary["rounds"] != 1 else ""
    return "\n".join([
        f"{summary['rounds']} round{plural}: {', '.join(scores) or 'not evaluated'}",
        *([f"last evaluated: {', '.join(further)}"] if further else []),
        *([f"kept in {out}"] if out else []),
    ])  # fmt: skip


def named(key: str) -> str:
    """'last ten AUC'"""
    from holdfast import headline

    when = next((w for w in ("last_ten_", "last_", "best_") if key.startswith(w)), "")
    return when.replace("_", " ") + headline.label(key.removeprefix(when))
