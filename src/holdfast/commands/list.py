"""what --split, --model, --augment and --normalize can name, or one of them in full"""

from __future__ import annotations

import argparse
import difflib
import json
from typing import Any

from holdfast.commands.parts import line
from holdfast.errors import Refused

EXAMPLES = """\
examples:
  holdfast list
  holdfast list split
  holdfast list split dirichlet
  holdfast list model --json

data sets: holdfast data list; methods: holdfast parts
"""
KINDS = ("split", "model", "augment", "normalize")
OUTSIDE = {
    "split": "and a split.json of a run",
    "model": "and timm:NAME, torchvision:NAME (of these libraries, where installed), package.module:callable",
    "augment": "and several of them joined by +, or none",
    "normalize": "and data, the training samples' own",
}


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("kind", nargs="?", choices=KINDS, metavar="OPTION", help=", ".join(KINDS))
    command.add_argument("name", nargs="?", help="one of them, to show in full")


def command(options: argparse.Namespace) -> int:
    from holdfast.choices import KINDS as ROWS

    rows = [row for kind in ([options.kind] if options.kind else KINDS) for row in ROWS[kind]()]
    if options.name is not None:
        rows = [row for row in rows if row["name"] == options.name] or unknown(options.kind, options.name, rows)
    if options.json:
        for row in rows:
            print(json.dumps(row))
    elif options.kind is None:
        overview(rows)
    else:
        for row in rows:
            show(row, options.name is not None)
        if options.name is None:
            print(OUTSIDE[options.kind])
    return 0


def unknown(kind: str, name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    near = difflib.get_close_matches(name, [row["name"] for row in rows], 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"see holdfast list {kind}"
    raise Refused(f"--{kind} names no '{name}'; {hint}")


def overview(rows: list[dict[str, Any]]) -> None:
    """Names only."""
    for kind in KINDS:
        line(kind, ", ".join(row["name"] for row in rows if row["kind"] == kind) + f"; {OUTSIDE[kind]}")
    print("holdfast list OPTION says what they do; data sets: holdfast data list; methods: holdfast parts")


def show(row: dict[str, Any], whole: bool) -> None:
    print(row["text"])
    line("what", row["what"])
    line("stands for", row.get("stands_for", ""))
    for name, what in row.get("rules", {}).items():
        line(f"'{name}'", what)
    if "parameters" in row:
        of = " x ".join(map(str, row["shape"]))
        line("size", f"{row['parameters']:,} parameters on samples of {of}, {row['classes']} classes")
    for name in ("mean", "std"):
        line(name, ", ".join(f"{value:g}" for value in row.get(name, ())))
    if whole:
        line("notes", row.get("notes", ""))
    for known in row.get("published", ()):
        ids = " = ".join(filter(None, (known["id"], known["letter"]))) or "also"
        line(ids, f"{known['text']}: {known['used_by']}")
