"""the catalogue of parts and presets, or one of them in full"""

from __future__ import annotations

import argparse
import difflib
import json
from typing import Any

from holdfast.errors import Refused

EXAMPLES = """\
examples:
  holdfast parts
  holdfast parts scaffold
"""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", help="a part or preset to show in full")


def command(options: argparse.Namespace) -> int:
    from holdfast.parts import REGISTRY
    from holdfast.presets import PRESETS

    if options.name is not None:
        return one(options.name, options.json)
    if options.json:
        for name in sorted(REGISTRY):
            print(json.dumps(facts(name)))
        for name, text in PRESETS.items():
            print(json.dumps({"preset": name, "method": text or "fedavg"}))
        return 0
    print("parts")
    for name in sorted(REGISTRY):
        found = facts(name)
        print(f"  {found['text']}\n      {found['about']}  [{', '.join(found['slots'])}]")
    print("presets")
    for name, text in PRESETS.items():
        print(f"  {name:<15} {text or 'the plain average: no part'}")
    return 0


def facts(name: str) -> dict[str, Any]:
    from holdfast.parts import REGISTRY

    cls = REGISTRY[name]
    slots = [slot.__name__.lower() for slot in cls.slots()]
    return {"part": name, "text": cls().text(full=True), "slots": slots, "about": docstring(cls)[0]}


def docstring(cls: type) -> list[str]:
    return [line.strip() for line in (cls.__doc__ or "").strip().splitlines()]


def one(name: str, as_json: bool) -> int:
    from holdfast.parts import REGISTRY
    from holdfast.presets import PRESETS

    if name in PRESETS:
        text = PRESETS[name] or "fedavg"
        print(json.dumps({"preset": name, "method": text}) if as_json else f"{name} is the preset {text}")
        return 0
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, [*REGISTRY, *PRESETS], 3)
        raise Refused(
            f"unknown part '{name}'; " + (f"did you mean {' or '.join(near)}?" if near else "see holdfast parts")
        )
    whole = details(name)
    if as_json:
        print(json.dumps(whole))
        return 0
    print(f"{whole['text']}\n\n  " + "\n  ".join(whole["description"]))
    print(f"\n  slots        {', '.join(whole['slots'])}")
    for key in ("options", "memory", "state", "carry", "uplink", "neutral", "excludes"):
        for entry, value in whole[key].items():
            print(f"  {key:<12} {entry}: {value}")
    print("\n" + whole["bibtex"])
    return 0


def details(name: str) -> dict[str, Any]:
    from holdfast.parts import REGISTRY
    from holdfast.references import bibtex

    cls, part = REGISTRY[name], REGISTRY[name]()
    options = {key: f"{value!r}, {cls.ranges.get(key, 'any')}" for key, value in part.options().items()}
    return facts(name) | {
        "description": docstring(cls),
        "options": options,
        "memory": dict.fromkeys(part.kept("memory"), "kept by a client"),
        "state": dict.fromkeys(part.kept("state"), "kept by the server"),
        "carry": dict.fromkeys(part.kept("carry"), "lives for one local run"),
        "uplink": {key: f"sent up, {how}" for key, how in cls.uplink.items()},
        "neutral": {key: f"changes nothing at {value}" for key, value in cls.neutral.items()},
        "excludes": dict(cls.excludes),
        "bibtex": bibtex(cls.cites),
    }
