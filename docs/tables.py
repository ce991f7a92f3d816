"""Writes docs/tables/: what data sets, splits, models, augmentations and constants there are, for the pages about them.

Everything is read off the code's registries, as `holdfast list` and `holdfast data list` read it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from methods import cell, table, tidy

from holdfast import choices
from holdfast.data.catalog import catalog


def prose(text: str) -> str:
    """A docstring: what stands in backquotes is code, the rest is words."""
    pieces = text.split("`")
    return "".join(code(piece) if i % 2 else cell(piece) for i, piece in enumerate(pieces))


def code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`" if text else ""


def sets() -> list[str]:
    rows, notes = [], dict[str, list[str]]()
    for entry in catalog().values():
        if entry.note:
            notes.setdefault(entry.note, []).append(code(entry.name))
        known = ", ".join(f"{key}={value!r}" for key, value in entry.options.items())
        named = f"[{entry.name}]({entry.home})"
        rows.append((named, prose(entry.title), cell(entry.samples), code(known), cell(entry.licence)))
    lines = table(("name", "what", "training + test samples", "options", "licence"), rows)
    return [*lines, *(f"- {', '.join(names)}: {prose(note)}." for note, names in notes.items())]


def copies() -> list[str]:
    """What is read of each set, and where it is looked for without being imported."""
    rows = []
    for entry in catalog().values():
        read = "; ".join(layout.what for layout in entry.layouts)
        way = "yes" if any(file.url for file in entry.files) else cell(entry.how or "no")
        places = ", ".join(map(code, entry.places))
        rows.append((code(entry.name), cell(read), places, ", ".join(map(code, entry.hub)), way))
    head = (
        "name",
        "layouts that are read",
        "looked for in the data folder",
        "and in the Hugging Face cache",
        "download",
    )
    return table(head, rows)


def own() -> list[str]:
    rows = [(code(row["text"]), " ".join(map(prose, (row["what"], row["notes"])))) for row in choices.own_sets()]
    return table(("name and options", "what"), rows)


def splits() -> list[str]:
    lines = []
    for row in choices.splits():
        lines += [f"### {row['name']}", "", code(row["text"]), "", prose(row["what"]), ""]
        if row["name"] == "dirichlet":
            rules = [(code(name), prose(what)) for name, what in row["rules"].items()]
            lines += table(("rule", "what it does"), rules)
        lines += [prose(row["notes"]), ""] if row["notes"] else []
    return lines


def published() -> list[str]:
    rows = [(p.id, p.letter, code(p.text), cell(p.used_by)) for p in choices.PUBLISHED]
    return table(("P", "letter", "here", "used by"), rows)


def models() -> list[str]:
    rows = []
    for row in choices.models():
        of = " x ".join(map(str, row["shape"])) + f", {row['classes']}"
        what = " ".join(map(prose, (row["what"], row["notes"]))).strip()
        rows.append((code(row["text"]), what, f"{row['parameters']:,}", of))
    return table(("name and options", "what", "parameters", "of samples, classes"), rows)


def steps() -> list[str]:
    rows = [(code(row["text"]), " ".join(map(prose, (row["what"], row["notes"]))).strip()) for row in choices.steps()]
    return table(("step and options", "what it does"), rows)


def presets() -> list[str]:
    rows = [(code(row["name"]), code(row["stands_for"]), cell(row["what"])) for row in choices.presets()]
    return table(("name", "stands for", "whose"), rows)


def constants() -> list[str]:
    def numbers(values: Any) -> str:
        return ", ".join(f"{value:g}" for value in values)

    rows = [(code(row["name"]), numbers(row["mean"]), numbers(row["std"]), cell(row["what"]))
            for row in choices.constants()]  # fmt: skip
    return table(("name", "mean", "standard deviation", "whose"), rows)


MADE = {
    "sets": sets, "copies": copies, "own": own, "splits": splits, "published": published, "models": models,
    "steps": steps, "presets": presets, "constants": constants,
}  # fmt: skip


def write(folder: Path) -> None:
    tidy(folder, {name: make() for name, make in MADE.items()})
