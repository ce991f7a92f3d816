"""The planted mistakes of bench/mistakes.py: each is caught, the right ones are not, and the docs say so."""

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def mistakes():
    """The script as a module; what it puts on the path goes again."""
    path = list(sys.path)
    sys.path.insert(0, str(BENCH))
    try:
        yield importlib.import_module("mistakes")
    finally:
        sys.path[:] = path


def test_planted_mistakes(mistakes):
    """One test, for the rows take half a minute and are needed by all of it."""
    rows = mistakes.quick()
    missed = [row["mistake"] for row in rows if row["wrong"] and not row["caught"]]
    alarms = [(row["mistake"], row["caught"]) for row in rows if not row["wrong"] and row["caught"]]
    assert not missed and not alarms
    assert {row["base"] for row in rows} == {"scaffold", "dyn"} and len(rows) == len(mistakes.MISTAKES)
    stored = json.loads(mistakes.RESULTS.read_text())
    assert stored["planted"] == rows, "run python bench/mistakes.py --quick"
    assert mistakes.PAGE.read_text() == mistakes.page(rows, stored["real"]), "run python bench/mistakes.py --quick"


def test_planted_parts_stay_out_of_the_registry(mistakes):
    from holdfast.parts import REGISTRY

    assert not [name for name in REGISTRY if name.startswith("wrong_")]
    assert all(mistake.part is None or mistake.part.name not in REGISTRY for mistake in mistakes.MISTAKES)
