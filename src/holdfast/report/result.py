"""The table, what it says, and what to keep in mind about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from holdfast.headline import label as metric_name
from holdfast.report.charts import strip, swatch
from holdfast.report.figures import Spread, best, closing, last, over_seeds, percent, plain, reached, score, size, tenth
from holdfast.report.further import further
from holdfast.report.gather import METRICS, Group, RunView
from holdfast.report.markup import NOTHING, named, stacked, table
from holdfast.report.notes import all_runs, counted, finding, notes

SETTINGS = ("data", "split", "model", "rounds", "cohort", "epochs", "steps", "batch", "lr", "lr_decay", "server_lr")


def result(groups: Sequence[Group], rows: Sequence[dict[str, Any]] | None, target: float | None) -> str:
    shown = given_table(groups, rows) if rows else own_table(groups, target)
    found = "".join(f'<p class="finding">{escape(text)}</p>' for text in finding(groups))
    items = "".join(f"<li>{escape(text)}</li>" for text in notes(groups))
    minded = f'<h3>Read it with this in mind</h3><ul class="notes">{items}</ul>'
    return f"{settings(groups)}{shown}{found}{further(groups)}{minded}"


def settings(groups: Sequence[Group]) -> str:
    """What all runs have in common."""
    tables = [view.run for view in all_runs(groups)]
    same = [key for key in SETTINGS if key in tables[0] and all(run.get(key) == tables[0][key] for run in tables)]
    items = [(key.replace("_", " "), setting(tables[0][key])) for key in same]
    return '<dl class="settings">' + "".join(f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in items) + "</dl>"


def setting(value: Any) -> str:
    return plain(value) if isinstance(value, float) else str(value)


def given_table(groups: Sequence[Group], rows: Sequence[dict[str, Any]]) -> str:
    """The caller's texts as they are; a row that names a group gets the group's colour."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    known = {text: i for i, g in reversed(list(enumerate(groups))) for text in (g.runs[0].run["method"], g.label)}
    body = []
    for row in rows:
        name, *others = (str(row.get(key, "")) for key in head)
        mark = swatch(known[name]) if name in known else ""
        body.append(
            [
                f'<span class="name">{mark}<span>{escape(name)}</span></span>',
                *(stacked(escape(cell)) for cell in others),
            ]
        )
    return table([escape(str(key)) for key in head], body, "numbers given")


def own_table(groups: Sequence[Group], target: float | None) -> str:
    head = ["method", "runs", "best round, %", "last round, %", "mean of last ten, %", "bytes in all, a run"]
    if target is not None:
        head += [f"rounds to {percent(target)} %", f"bytes to {percent(target)} %"]
    mixed = len({group.metric for group in groups}) > 1
    ends = {metric: reach([g for g in groups if g.metric == metric]) for metric in METRICS}
    scales = {ends[group.metric] for group in groups if ends[group.metric]}
    low, high = next(iter(scales)) if len(scales) == 1 else (0.0, 0.0)
    head.append("last ten, each seed" + (f", {score(low)} to {score(high)} %" if low < high else ""))
    if mixed:
        head.insert(1, "metric")
    body = []
    for i, group in enumerate(groups):
        cells = own_row(group, i, target, ends[group.metric])
        body.append([cells[0], metric_name(group.metric), *cells[1:]] if mixed else cells)
    return table(head, body, "numbers mixed" if mixed else "numbers")


def own_row(group: Group, index: int, target: float | None, ends: tuple[float, float]) -> list[str]:
    kept = counted(group)
    ended = sum(view.finished for view in group.runs)
    runs = str(len(kept.runs)) if ended == len(group.runs) else f"{ended} of {len(group.runs)} finished"
    runs += f", {broken} diverged" if (broken := sum(bool(view.broken) for view in kept.runs)) else ""
    columns: list[tuple[Callable[[RunView], float], Callable[[float], str]]] = [
        (best, score), (last, score), (closing, score), (lambda view: view.bytes, size),
    ]  # fmt: skip
    cells = [named(group, index), runs]
    for value, form in columns:
        spread = Spread.of(map(value, kept.runs)) if form is size else over_seeds(kept, value)
        cells.append(NOTHING if spread is None else spread.text(form) if spread.sd else form(spread.mean))
    if target is not None:
        cells += to_target(kept, target)
    values = [closing(view) for view in kept.runs if view.scores]
    return [cells[0], *map(stacked, cells[1:]), strip(values, *ends, index) if values else NOTHING]


def reach(groups: Sequence[Group]) -> tuple[float, float]:
    values = [closing(view) for group in groups for view in counted(group).runs if view.scores]
    return (min(values), max(values)) if values else (0.0, 0.0)


def to_target(group: Group, target: float) -> list[str]:
    found = [at for view in group.runs if (at := reached(view, target))]
    rounds, sent = Spread.of(at[0] for at in found), Spread.of(at[1] for at in found)
    if rounds is None or sent is None:
        return ["not reached", "not reached"]
    few = "" if len(found) == len(group.runs) else f" ({len(found)} of {len(group.runs)} runs)"
    return [rounds.text(tenth) + few, sent.text(size) + few]
