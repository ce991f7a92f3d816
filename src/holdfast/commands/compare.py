"""methods against each other over seeds: one table, one page"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from holdfast.commands.options import EXTRAS, add_file, add_options, given, read
from holdfast.errors import Refused

EXAMPLES = """\
examples:
  holdfast compare --methods "fedavg; scaffold; fedavg + specgrad(r=0.05)" --seeds 3 --out runs/c
  holdfast compare --methods "fedavg; feddyn" --rounds 100 --target 0.9 --out runs/d --resume
  holdfast compare comparison.toml --set rounds=20 --out runs/e
"""


def add(command: argparse.ArgumentParser) -> None:
    add_file(command)
    quiet: Any = argparse.SUPPRESS
    command.add_argument(
        "--methods", default=quiet, help="texts of methods, separated by ';'; the first is the baseline"
    )
    command.add_argument("--seeds", type=int, default=quiet, help="seeds a method, counted from --seed (3)")
    command.add_argument(
        "--target", type=float, default=quiet, help="accuracy to reach (what the first method reaches)"
    )
    add_options(command)
    command.add_argument("--out", help="the folder of the comparison", required=True)
    command.add_argument("--resume", action="store_true", help="go on with the comparison in --out")


def command(options: argparse.Namespace) -> int:
    asked = given(options, read(options.experiment)[0])
    asked |= {key: getattr(options, key) for key in EXTRAS if hasattr(options, key)}
    methods, seeds, target = asked.pop("methods", ""), asked.pop("seeds", 3), asked.pop("target", None)
    if "method" in asked:
        raise Refused("a comparison has methods, not a method; write methods = [...] or --methods")
    texts = methods.split(";") if isinstance(methods, str) else methods
    from holdfast.compare import aim, compare, table, verdict
    from holdfast.experiment import Run
    from holdfast.live import Live

    out = Path(options.out)
    with Live(options.json) as live:
        wanted = [text.strip() for text in texts if text.strip()]
        found = compare(Run(**asked), wanted, seeds, out, options.resume, target, live.tell, live.round)
    rows = table(found)
    kept = [out / entry.folder for entry in found.entries if entry.rows]
    page = write_page(out, kept, rows, verdict(found), aim(found)) if kept else None
    if options.json:
        print(
            json.dumps(
                {"table": rows, "verdict": verdict(found), "page": str(page) if page else None, "done": found.done}
            )
        )
    else:
        print(aligned(rows))
        print("accuracy in %, mean ± sd over seeds; last ten: mean of the last ten evaluated rounds")
        print(verdict(found))
        print(f"page {page}" if page else "no page: no run has a round")
    if not found.done:
        print("stopped before the end; --resume goes on", file=sys.stderr)
    failed = any(entry.failure for entry in found.entries)
    return 0 if found.done and not failed else 1


def write_page(out: Path, runs: list[Path], rows: list[dict[str, str]], title: str, target: float | None) -> Path:
    from holdfast.report import find, grouped, render, write

    path = out / "report.html"
    command = shlex.join(["holdfast", *sys.argv[1:]])
    write(path, render(grouped(find(runs)), title=title, rows=rows, target=target, command=command))
    return path


def aligned(rows: list[dict[str, str]]) -> str:
    """The table for a terminal: the first column to the left, figures to the right."""
    names = list(rows[0]) if rows else []
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}

    def line(cells: dict[str, str]) -> str:
        first, *others = names
        return "  ".join([cells[first].ljust(widths[first]), *(cells[n].rjust(widths[n]) for n in others)])

    return "\n".join([line({n: n for n in names}), *(line(row) for row in rows)])
