"""one page about runs: curves, table, split, costs, commands to repeat them"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

EXAMPLES = """\
examples:
  holdfast report runs/a runs/b -o report.html
  holdfast report runs/c -o report.html        every run below the folder
"""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs, or folders that hold such folders")
    command.add_argument("-o", "--output", default="report.html", help="the page to write (report.html)")


def command(options: argparse.Namespace) -> int:
    from holdfast.report import find, grouped, render, write

    groups = grouped(find([Path(run) for run in options.runs]))
    names = ", ".join(group.label for group in groups)
    write(Path(options.output), render(groups, title=names))
    print(json.dumps({"page": options.output}) if options.json else options.output)
    return 0
