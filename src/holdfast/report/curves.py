"""The curves: score and train loss over rounds, score against bytes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from holdfast.headline import label
from holdfast.report.charts import Axis, Frame, Series, chart, data, enclosing, swatch, within
from holdfast.report.figures import Point, curve, percent, score, size
from holdfast.report.gather import METRICS, Group
from holdfast.report.markup import NOTHING


def curves(groups: Sequence[Group], target: float | None) -> str:
    keys = "".join(
        f'<li><button type="button" class="key-of" data-series="{i}" aria-pressed="true">{swatch(i)}'
        f"<span>{escape(group.label)}</span></button></li>"
        for i, group in enumerate(groups)
    )
    drawn = "".join(scores(groups, metric, target) for metric in METRICS)
    loss = [Series(g.label, i, curve(g, "train_loss"), len(g.runs)) for i, g in enumerate(groups)]
    small = drawing(loss, "loss", "Train loss over rounds", "train loss", "loss") if has(loss) else ""
    for metric in METRICS:
        series = of_metric(groups, metric, against_bytes=True)
        name = label(metric)
        if has(series):
            small += drawing(series, f"{metric}-bytes", f"{capital(name)} against bytes, %", name, "bytes", target)
    return (
        '<p class="said">Lines are means over seeds, bands one standard deviation to each side. '
        f'A name hides or shows its curve.</p><ul class="legend">{keys}</ul>{drawn}<div class="pair">{small}</div>'
    )


def of_metric(groups: Sequence[Group], metric: str, against_bytes: bool = False) -> list[Series]:
    return [
        Series(g.label, i, curve(g, metric, against_bytes), len(g.runs))
        for i, g in enumerate(groups)
        if g.metric == metric
    ]


def has(series: Sequence[Series]) -> bool:
    return any(s.points for s in series)


def scores(groups: Sequence[Group], metric: str, target: float | None) -> str:
    series = of_metric(groups, metric)
    if not has(series):
        return ""
    name = label(metric)
    return drawing(series, metric, f"{capital(name)} over rounds, %", name, "score", target, big=True)


def capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def drawing(
    series: Sequence[Series], name: str, title: str, quantity: str, kind: str, target: float | None = None,
    big: bool = False,
) -> str:  # fmt: skip
    points = [point for s in series for point in s.points]
    y = vertical(points, quantity, bounded=kind != "loss", target=target)
    x = along(points, kind)
    sizes = {"wide": (980, 400), "narrow": (380, 320)} if big else {"any": (480, 330)}
    drawings = ""
    for style, (wide, high) in sizes.items():
        sparse = within(x.title, x.lo, x.hi, 5) if kind != "bytes" and wide < 500 else x
        drawings += chart(Frame(wide, high, sparse, y), series, name, style, target)
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><div class="plot">{drawings}'
        f'<div class="tip" hidden></div></div>'
        f"{data(kind, series)}{values(series) if big else ''}</figure>"
    )


def vertical(points: Sequence[Point], quantity: str, bounded: bool, target: float | None) -> Axis:
    """An axis that holds the bands; a share never needs more than 0 to 1."""
    ends = [p.y.mean + sign * (p.y.sd or 0.0) for p in points for sign in (-1, 1)]
    if bounded:
        ends = [min(1.0, max(0.0, end)) for end in ends]
        ends += [target] if target is not None and 0 <= target <= 1 else []
        return enclosing(f"{quantity}, %", ends, percent)
    if min(p.y.mean for p in points) >= 0:
        ends = [max(0.0, end) for end in ends]
    return enclosing(quantity, ends)


def along(points: Sequence[Point], kind: str) -> Axis:
    ends = [p.x for p in points]
    if kind != "bytes":
        return within("round", min(ends), max(ends), 12)
    axis = enclosing("bytes down and up, all clients", [0.0, max(ends)], size, 5)
    return Axis(axis.title, 0.0, max(*ends, 1.0), tuple(t for t in axis.ticks if t <= max(ends)), size)


def values(series: Sequence[Series]) -> str:
    """The curve as numbers, for reading without the drawing."""
    rounds = sorted({p.round for s in series for p in s.points})
    at = [{p.round: p.y for p in s.points} for s in series]
    head = "".join(f'<th scope="col">{escape(s.name)}</th>' for s in series)
    lines = "".join(
        f'<tr><th scope="row">{r}</th>'
        + "".join(f"<td>{known[r].text(score) if r in known else NOTHING}</td>" for known in at)
        + "</tr>"
        for r in rounds
    )
    return (
        '<details class="values"><summary>The same as numbers</summary><div class="scroll" tabindex="0" role="region" '
        f'aria-label="Values of the curves"><table><thead><tr><th scope="col">round</th>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div></details>"
    )
