"""methods against each other over seeds: one table, one page"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.commands.given import given, placed
from holdfast.commands.options import EXTRAS, add_file, add_options, folder, number
from holdfast.errors import Refused

if TYPE_CHECKING:
    from holdfast.report import RunView
    from holdfast.table import Comparison

EXAMPLES = """\
examples:
  holdfast compare --methods "fedavg; scaffold; fedavg + specgrad(r=0.05)" --seeds 3 --out runs/c
  holdfast compare --methods "fedavg; feddyn" --rounds 100 --target 0.9 --out runs/d
  holdfast compare --out runs/d --resume
  holdfast compare comparison.toml --set rounds=20 --out runs/e
"""


def add(command: argparse.ArgumentParser) -> None:
    add_file(command, "the compare.toml of a comparison")
    quiet: Any = argparse.SUPPRESS
    command.add_argument(
        "--methods", default=quiet, help="texts of methods, separated by ';'; the first is the baseline"
    )
    command.add_argument("--seeds", type=number(int), default=quiet, help="seeds a method, counted from --seed (3)")
    command.add_argument(
        "--target", type=number(float), default=quiet, help="score to reach, a share (what the first method reaches)"
    )
    add_options(command)
    command.add_argument("--out", type=folder, help="the folder of the comparison", required=True)
    command.add_argument("--resume", action="store_true", help="go on with the comparison in --out")


def command(options: argparse.Namespace) -> int:
    asked = given(options)
    if "method" in asked.values:
        place = asked.places["method"]
        said = "a comparison has methods, not a method; write methods = [...] or --methods"
        raise Refused(*asked.problems, f"{place}: {said}" if place else said)
    from holdfast import agreed, experiment
    from holdfast.compare import compare
    from holdfast.live import Live
    from holdfast.table import footnote, further, table, verdict

    def alone(key: str, value: Any) -> list[str]:
        return (agreed if key in EXTRAS else experiment).alone(key, value)

    out = Path(options.out)
    with placed(asked, alone), Live(options.json) as live:
        found = compare(asked.values, out, options.resume, live.tell, live.round)
    rows, more, page = table(found), further(found), write_page(out, found)
    if options.json:
        last = {"table": rows, "further": more, "verdict": verdict(found), "page": str(page) if page else None}
        print(json.dumps({**last, "done": found.done}))
    else:
        print(aligned(rows))
        print(footnote(found))
        if more:
            print(f"\n{aligned(more)}\nfurther figures of the last ten evaluated rounds, in %, mean ± sd over seeds\n")
        print(verdict(found))
        print(f"page {page}" if page else "no page: no run has a round")
    if not found.done:
        print("stopped before the end; --resume goes on", file=sys.stderr)
    return 0 if found.done and not any(entry.failure for entry in found.entries) else 1


def write_page(out: Path, found: Comparison) -> Path | None:
    """The page of all runs that have a round, under the names by which their methods were asked for."""
    from holdfast import agreed
    from holdfast.report import find, grouped, render, write
    from holdfast.table import aim, table, verdict
    from holdfast.text import parse

    views: list[RunView] = []
    for entry in (entry for entry in found.entries if entry.rows):
        try:
            views += find([out / entry.folder])
        except Refused as refused:
            print(f"left out of the page: {refused}", file=sys.stderr)
    if not views:
        return None
    names = {parse(method).text(full=True): method for method in found.methods}
    groups = [replace(group, label=names.get(group.runs[0].run["method"], group.label)) for group in grouped(views)]
    path = out / "report.html"
    command = shlex.join(["holdfast", "compare", str(out / agreed.FILE), "--out", f"{out}-again"])
    write(path, render(groups, title=verdict(found), rows=table(found), target=aim(found), command=command))
    return path


def aligned(rows: list[dict[str, str]]) -> str:
    """The table for a terminal: the first column to the left, figures to the right."""
    names = list(rows[0]) if rows else []
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}

    def line(cells: dict[str, str]) -> str:
        first, *others = names
        return "  ".join([cells[first].ljust(widths[first]), *(cells[n].rjust(widths[n]) for n in others)])

    return "\n".join([line({n: n for n in names}), *(line(row) for row in rows)])
