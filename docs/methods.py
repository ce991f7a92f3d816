"""Writes docs/methods/: a page for every part and preset, and an index, from `holdfast.catalogue`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.catalogue import REFERENCE, everything, name_of
from holdfast.references import bibtex


def cell(text: str) -> str:
    """A bare bar ends a cell; stars and underscores would be taken for emphasis, and < for HTML."""
    for sign in "\\`*_<|$[]{}":
        text = text.replace(sign, "\\" + sign)
    return text


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(row) + " |" for row in lines] + [""]


def block(text: str) -> list[str]:
    return ["```text", text, "```", ""]


def equation(text: str) -> list[str]:
    """Each formula of a list on its own line."""
    return block(text.replace(";  ", "\n")) if text else []


def cited(keys: list[str]) -> list[str]:
    return ["## Cite", "", *block("\n".join(bibtex(key) for key in keys))] if keys else []


def cost(found: dict[str, Any]) -> list[str]:
    paid, beside = found["cost"], found.get("beside")
    rows = [
        ("bytes down", f"{paid['down']:g} x model"), ("bytes up", f"{paid['up']:g} x model"),
        ("kept by a client", f"{paid['memory']:g} x model"), ("kept by the server", f"{paid['state']:g} x model"),
        ("passes a step", str(paid["passes"])), ("extra forwards a step", str(paid["forwards"])),
        ("the server needs", paid["needs"] or "sums over clients only"),
    ]  # fmt: skip
    about = f"Of one client and round, on an {REFERENCE}" + (f", beside `{beside}`." if beside else ".")
    return ["## Cost", "", about, "", *table(("", ""), rows)]


def options(found: dict[str, Any]) -> list[str]:
    rows = [(f"`{key}`", f"`{o['default']}`", cell(o["range"])) for key, o in found["options"].items()]
    return ["## Options", "", *table(("option", "default", "may be"), rows)] if rows else []


def calibration(found: dict[str, Any]) -> list[str]:
    lines = [f"# {found['calibration']}", "", cell(found["what"]), "", *block(found["text"] + " samples=1000")]
    lines += [*equation(found["equation"]), f"Source: {cell(found['source'])}", "", cell(found["notes"]), ""]
    lines += [*options(found), "## Cost", "", found["told_cost"].capitalize() + ".", ""]
    return lines + cited(found["cites"])


def part(found: dict[str, Any]) -> list[str]:
    lines = [f"# {found['part']}", "", cell(found["what"]), "", *equation(found["equation"])]
    lines += [f"Source: {cell(found['source'])}", "", cell(found["notes"]), ""]
    lines += ["Slots: " + ", ".join(found["slots"]) + ".", ""]
    lines += options(found)
    kept = [(f"`{name}`", where) for key, where in KEPT.items() for name in found[key]]
    kept += [(f"`{name}`", f"sent up by a client, reduced by {how}") for name, how in found["uplink"].items()]
    if kept:
        lines += ["## What it keeps and sends", "", *table(("", ""), kept)]
    if found["neutral"]:
        at = ", ".join(f"`{key}={value:g}`" for key, value in found["neutral"].items())
        lines += [f"It changes nothing at {at}.", ""]
    lines += cost(found)
    if found["excludes"]:
        rows = [(f"[{name}]({name}.md)", cell(why)) for name, why in sorted(found["excludes"].items())]
        lines += ["## Does not stand beside", "", *table(("part", "because"), rows)]
    return lines + cited(found["cites"])


KEPT = {"memory": "kept by a client between rounds", "state": "kept by the server", "carry": "lives for one local run"}


def preset(found: dict[str, Any]) -> list[str]:
    lines = [f"# {found['preset']}", "", f"The preset `{found['method']}`.", ""]
    lines += [f"- [{name}]({name}.md)" for name in found["parts"]]
    rows = [(s["where"], s["slot"], f"`{s['part']}`", cell(s["does"])) for s in found["pipeline"]]
    lines += ["", "## In a round", "", *table(("where", "slot", "part", "what it does"), rows)]
    return lines + cost(found) + cited(found["cites"])


def index(told: list[dict[str, Any]]) -> list[str]:
    """All of them in one table each, and a hidden list for the sidebar."""

    def row(found: dict[str, Any]) -> tuple[str, ...]:
        name = name_of(found)
        what = f"`{found['method']}`" if "preset" in found else cell(found["what"])
        return f"[{name}]({name}.md)", what, ", ".join(found.get("slots", [])), cell(found["told_cost"])

    head = ("name", "what", "slots", "cost")
    parts, presets, after = ([row(f) for f in told if kind in f] for kind in ("part", "preset", "calibration"))
    names = [name_of(f) for f in told]
    lines = ["# Methods", "", f"Costs are of one client and round, in multiples of the model, on an {REFERENCE}.", ""]
    lines += ["## Published names", "", *table(head, presets), "## Parts", "", *table(head, parts)]
    lines += ["## Of a finished run", "", *table(head, after)]
    return [*lines, "```{toctree}", ":hidden:", "", *names, "```"]


def write(folder: Path) -> None:
    told = list(everything())
    made = {"part": part, "preset": preset, "calibration": calibration}
    pages = {name_of(found): made[next(kind for kind in made if kind in found)](found) for found in told}
    tidy(folder, {**pages, "index": index(told)})


def tidy(folder: Path, pages: dict[str, list[str]]) -> None:
    """Only what has changed, so that Sphinx builds only that again; pages of what is gone go."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, lines in pages.items():
        text, path = "\n".join(lines).rstrip() + "\n", folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
