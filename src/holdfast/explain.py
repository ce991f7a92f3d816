"""A method told in words: its pipeline in the order of a round, its data sheet, its citations."""

from __future__ import annotations

from typing import Any

from holdfast.check import Sheet
from holdfast.method import Method, Part
from holdfast.references import bibtex
from holdfast.slots import SLOTS, Cast, Merge, Update, Weigh

SERVER = (Cast, Weigh, Merge, Update)
ALWAYS = "mcmahan2017"  # every method here averages what clients trained


def explained(method: Method, sheet: Sheet) -> dict[str, Any]:
    cites = dict.fromkeys((ALWAYS, *(p.cites for p in method.parts)))
    return {
        "method": method.text(full=True),
        "pipeline": pipeline(method),
        "sheet": sheet.rows(),
        "citations": [bibtex(key) for key in cites],
    }


def pipeline(method: Method) -> list[dict[str, str]]:
    """One entry for every slot that a part fills, in the order in which a round calls them."""
    steps: list[dict[str, str]] = []
    for slot in SLOTS:
        if slot is Weigh and not method.slot(Weigh):
            how = "clients count equally" if method.equal else "clients count by their samples"
            steps.append({"where": "server", "slot": "weigh", "part": "(default)", "does": how})
        for p in method.slot(slot):
            assert isinstance(p, Part)
            where = "server" if slot in SERVER else "client"
            does = (type(p).__doc__ or "").strip().splitlines()[0]
            steps.append({"where": where, "slot": slot.__name__.lower(), "part": p.text(), "does": does})
    return steps
