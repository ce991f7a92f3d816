"""The split, what the methods cost, and how to repeat the runs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from holdfast.headline import label
from holdfast.report import heat
from holdfast.report.figures import last, listed, score, several
from holdfast.report.gather import Group, RunView
from holdfast.report.markup import TIMES, named, shell, table
from holdfast.report.notes import all_runs
from holdfast.report.repeat import command, from_elsewhere, given

SPLITS = 6  # drawn at most


def split(groups: Sequence[Group]) -> str:
    """Every split once; the first is open."""
    by_hash: dict[str, list[RunView]] = {}
    for view in all_runs(groups):
        by_hash.setdefault(view.split_hash, []).append(view)
    drawn = [(key, views) for key, views in by_hash.items() if views[0].counts and views[0].counts[0]]
    parts = [one_split(key, views, i == 0) for i, (key, views) in enumerate(drawn[:SPLITS])]
    if len(drawn) > SPLITS:
        more = several(len(drawn) - SPLITS, "more split")
        parts.append(f'<p class="said">{more} not drawn; the hash of each stands under Repeat.</p>')
    if len(drawn) < len(by_hash):
        absent = [views[0].folder for key, views in by_hash.items() if key not in dict(drawn)]
        parts.append(
            f'<p class="said">Stored without the counts of classes, so not drawn: {escape(listed(absent))}.</p>'
        )
    return "".join(parts)


def one_split(key: str, views: Sequence[RunView], opened: bool) -> str:
    seeds = sorted({view.seed for view in views})
    name = f"{several(len(seeds), 'seed').split(' ')[1]} {listed(seeds)}"
    figure = heat.figure(views[0].counts, views[0].measures)
    return (
        f"<details{' open' if opened else ''}><summary>{escape(views[0].run['split'])}, {name} "
        f'<code class="hash">{escape(key[:12])}</code></summary>{figure}</details>'
    )


def cost(groups: Sequence[Group]) -> str:
    head = [
        "method", "down", "up", "client memory", "server state", "passes a step", "extra forwards a step",
        "needs individual updates",
    ]  # fmt: skip
    body = [[named(g, i), *sheet(g.runs[0].sheet)] for i, g in enumerate(groups)]
    models = sorted({g.runs[0].sheet["model"] for g in groups})
    unit = f"{models[0]:,} bytes" if len(models) == 1 else f"{models[0]:,} to {models[-1]:,} bytes, by method"
    said = (
        "Data sheet of each method: bytes for one client and round; memory is kept by a client between rounds, state "
        f"by the server, its model included. {TIMES} counts shared models of {unit}."
    )
    return f'<p class="said">{said}</p>{table(head, body, "numbers")}'


def sheet(found: dict[str, Any]) -> list[str]:
    unit = max(found["model"], 1)
    cells = [
        f'{found[key]:,}&nbsp;B <span class="under">{found[key] / unit:.2f}&nbsp;{TIMES}</span>'
        for key in ("down", "up", "memory", "state")
    ]
    return [*cells, str(found["passes"]), str(found["forwards"]), "yes" if found["individual"] else "no"]


def repeat(groups: Sequence[Group], whole: str) -> str:
    above = f'<p class="said">This comparison:</p>{shell(whole)}' if whole else ""
    parts = []
    for i, group in enumerate(groups):
        runs = "".join(one_run(view) for view in group.runs)
        parts.append(f'<section class="group"><h3>{named(group, i)}</h3>{runs}</section>')
    said = (
        "The command of each run has every option that is not the default, and writes beside the old folder, which "
        "holdfast never writes over. The same bits also need the same plan: engine, lanes, threads and torch."
    )
    return f'{above}<p class="said">{said}</p>{"".join(parts)}'


def one_run(view: RunView) -> str:
    state = f"{view.done} of {view.run['rounds']} rounds" + ("" if view.finished else ", not finished")
    ended = f", last {label(view.metric)} {score(last(view))} %" if view.scores else ""
    line = command(view)
    if line:
        again = shell(line)
    else:
        again = f'<p class="said">No command: {escape(listed(given(view.run)))} of this run existed in Python only.</p>'
    if line and from_elsewhere(view):
        again += '<p class="said">Its seed does not make this split; it is read from the folder of the run.</p>'
    facts = {
        "folder": view.folder,
        "split hash": view.split_hash,
        "plan": plan(view.plan),
        "why": view.plan.get("why", ""),
    }
    items = "".join(f"<div><dt>{k}</dt><dd>{escape(str(v))}</dd></div>" for k, v in facts.items())
    return (
        f'<details class="run"><summary>seed {view.seed} <span class="muted">{state}{ended}</span></summary>'
        f'{again}<dl class="facts">{items}</dl></details>'
    )


def plan(found: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {'yes' if value is True else 'no' if value is False else value}"
        for key, value in found.items()
        if key != "why"
    )
