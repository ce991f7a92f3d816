"""What else was measured than what the runs are judged by: rankings, groups of samples, clients one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from holdfast import headline
from holdfast.report.figures import Spread, score
from holdfast.report.gather import Group, RunView
from holdfast.report.markup import NOTHING, named, stacked, table
from holdfast.report.notes import counted

Values = Callable[[RunView], dict[str, float]]
SAID = "Means of the last ten evaluated rounds, in percent."


def further(groups: Sequence[Group]) -> str:
    """Nothing where nothing else was measured."""
    found = figures(groups, lambda view: headline.further(view.metrics), headline.FURTHER)
    for key in headline.GROUPS:
        names = sorted({name for g in groups for view in g.runs for name in headline.groups(view.metrics, key)})
        found += figures(groups, lambda view, key=key: headline.groups(view.metrics, key), names)
    return f'<h3>Further measures</h3><p class="said">{SAID}</p>{found}' if found else ""


def figures(groups: Sequence[Group], values: Values, names: Sequence[str]) -> str:
    """A column for every figure that some run has."""
    held = [[values(view) for view in counted(group).runs] for group in groups]
    names = [name for name in names if any(name in run for runs in held for run in runs)]
    body = [[named(g, i), *(cell(name, held[i]) for name in names)] for i, g in enumerate(groups)]
    return table(["method", *(escape(headline.label(name)) for name in names)], body, "numbers") if names else ""


def cell(name: str, runs: Sequence[dict[str, float]]) -> str:
    spread = Spread.of(run[name] for run in runs if name in run)
    return NOTHING if spread is None else stacked(spread.text(score))
