"""A method told in words: its pipeline in the order of a round, its data sheet, its citations."""

from __future__ import annotations

from typing import Any

from holdfast.batchnorm import POLICIES
from holdfast.check import Sheet
from holdfast.method import Method, Part
from holdfast.references import bibtex
from holdfast.slots import SLOTS, Cast, Merge, Update, Weigh

SERVER = (Cast, Weigh, Merge, Update)
NAMES = {"memory": "kept by a client", "state": "kept by the server (its model included)"}  # of the data sheet
ALWAYS = "mcmahan2017"  # every method here averages what clients trained


def explained(method: Method, sheet: Sheet, batchnorm: str = "") -> dict[str, Any]:
    cites = dict.fromkeys((ALWAYS, *(p.cites for p in method.parts)))
    return {
        "method": method.text(full=True),
        "pipeline": pipeline(method),
        "parts": {p.name: sentence(type(p)) for p in method.parts},
        "sheet": [(NAMES.get(name, name), value) for name, value in sheet.rows()],
        **({"batchnorm": f"{batchnorm}: {POLICIES[batchnorm]}"} if batchnorm else {}),
        "citations": [bibtex(key) for key in cites],
    }


def pipeline(method: Method) -> list[dict[str, str]]:
    """One entry for every slot that a part fills, in the order in which a round calls them: what the slot is for."""
    steps: list[dict[str, str]] = []
    for slot in SLOTS:
        if slot is Weigh and not method.slot(Weigh):
            how = "clients count equally" if method.equal else "clients count by their samples"
            steps.append({"where": "server", "slot": "weigh", "part": "(default)", "does": how})
        for p in method.slot(slot):
            assert isinstance(p, Part)
            where = "server" if slot in SERVER else "client"
            steps.append({"where": where, "slot": slot.__name__.lower(), "part": p.text(), "does": purpose(slot)})
    return steps


def purpose(slot: type) -> str:
    """The first line that the slot's own hook says of itself."""
    return sentence(getattr(slot, slot.__name__.lower()))


def sentence(thing: Any) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
