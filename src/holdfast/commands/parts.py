"""the catalogue of parts and presets, or one of them in full"""

from __future__ import annotations

import argparse
import difflib
import json
import textwrap
from typing import Any

from holdfast.errors import Refused

EXAMPLES = """\
examples:
  holdfast parts
  holdfast parts scaffold
  holdfast parts --json
"""
WIDTH = 120


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", help="a part or preset to show in full")


def command(options: argparse.Namespace) -> int:
    from holdfast.catalogue import REFERENCE, everything

    if options.name is not None:
        return one(options.name, options.json)
    if options.json:
        for found in everything():
            print(json.dumps(found))
        return 0
    print(f"parts; cost of a client and round, in multiples of the model (measured on {REFERENCE})")
    told = list(everything())
    for found in (f for f in told if "part" in f):
        print(found["text"])
        for key in ("what", "equation", "source"):
            line(key, found[key])
        line("slots", ", ".join(found["slots"]))
        line("cost", found["told_cost"] + (f" (beside {found['beside']})" if found["beside"] else ""))
    print("presets")
    for found in (f for f in told if "preset" in f):
        print(f"  {found['preset']:<17} {found['method']:<32} {found['told_cost']}")
    print("of a finished run")
    for found in (f for f in told if "calibration" in f):
        show_calibration(found)
    return 0


def line(key: str, value: str) -> None:
    """'  key      value', wrapped under itself; nothing where there is no value."""
    if value:
        begin = f"    {key:<10} "
        print(textwrap.fill(value, WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin)))


def one(name: str, as_json: bool) -> int:
    from holdfast.catalogue import of_ccvr, of_preset
    from holdfast.parts import REGISTRY
    from holdfast.presets import PRESETS
    from holdfast.references import bibtex

    if name == "ccvr":
        found = of_ccvr() | {"bibtex": bibtex("luo2021")}
        print(json.dumps(found)) if as_json else show_calibration(found)
        return 0
    if name not in REGISTRY and name not in PRESETS:
        near = difflib.get_close_matches(name, [*REGISTRY, *PRESETS, "ccvr"], 3)
        raise Refused(
            f"unknown part '{name}'; " + (f"did you mean {' or '.join(near)}?" if near else "see holdfast parts")
        )
    whole = details(name) if name in REGISTRY else of_preset(name)
    if as_json:
        print(json.dumps(whole))
    elif name in REGISTRY:
        show_part(whole)
    else:
        show_preset(whole)
    return 0


def details(name: str) -> dict[str, Any]:
    from holdfast.catalogue import of_part
    from holdfast.parts import REGISTRY
    from holdfast.references import bibtex

    found, doc = of_part(name), (REGISTRY[name].__doc__ or "").strip()
    return found | {
        "description": [text.strip() for text in doc.splitlines()],
        "bibtex": "\n".join(bibtex(key) for key in found["cites"]),
    }


def show_part(whole: dict[str, Any]) -> None:
    print(f"{whole['text']}\n")
    print("\n".join("    " + text for text in whole["description"]) + "\n")
    line("slots", ", ".join(whole["slots"]))
    line("cost", whole["told_cost"] + (f" (beside {whole['beside']})" if whole["beside"] else ""))
    for key, option in whole["options"].items():
        line("option", f"{key}: {option['default']}, {option['range']}")
    for key, about in (("memory", "kept by a client"), ("state", "kept by the server"), ("carry", "of one local run")):
        for name in whole[key]:
            line(key, f"{name}: {about}")
    for name, how in whole["uplink"].items():
        line("uplink", f"{name}: sent up, {how}")
    for name, value in whole["neutral"].items():
        line("neutral", f"{name}: changes nothing at {value}")
    for name, why in whole["excludes"].items():
        line("excludes", f"{name}: {why}")
    print("\n" + whole["bibtex"])


def show_calibration(found: dict[str, Any]) -> None:
    """In the list, or in full where its BibTeX is at hand."""
    print(found["text"])
    for key in ("what", "equation", "source", *(("notes",) if "bibtex" in found else ())):
        line(key, found[key])
    line("cost", found["told_cost"])
    for key, option in found["options"].items() if "bibtex" in found else ():
        line("option", f"{key}: {option['default']}, {option['range']}")
    print("\n" + found["bibtex"] if "bibtex" in found else "", end="\n" if "bibtex" in found else "")


def show_preset(whole: dict[str, Any]) -> None:
    from holdfast.references import bibtex

    print(f"{whole['preset']} is the preset {whole['method']}\n")
    told = {name: details(name) for name in whole["parts"]}
    for name, part in told.items():
        print(f"{name}\n" + "\n".join("    " + text for text in part["description"]) + "\n")
    if not told:
        print(f"    {whole['what']}\n")
    line("cost", whole["told_cost"])
    print("\n" + "\n".join(bibtex(key) for key in whole["cites"]))
