"""A split drawn without a run: a page, or the heat map alone as an SVG that stands by itself."""

from __future__ import annotations

import re
from html import escape

from holdfast.data.told import Measures
from holdfast.report import heat
from holdfast.report.page import asset, document

DRAWN = '<svg class="chart heat wide" '


def page(text: str, about: str, counts: heat.Counts, measures: Measures) -> str:
    return document(text, about, {"split": ("Split", heat.figure(counts, measures))})


def picture(text: str, about: str, counts: heat.Counts) -> str:
    """The heat map in the colours of the page's light theme, on a ground of its own, with its scale in words."""
    drawing = heat.heat_map(counts, "wide", 980)
    assert drawing.startswith(DRAWN)
    size = re.search(r'viewBox="0 0 (\d+) ([\d.]+)"', drawing)
    assert size
    wide, high = int(size[1]), float(size[2])
    box = f'viewBox="0 -44 {wide} {high + 74:g}" width="{wide}" height="{high + 74:g}"'
    ground = f'<rect class="ground" x="0" y="-44" width="{wide}" height="{high + 74:g}"/>'
    lines = (("head", 12, -20, text), ("tick", 12, -2, about), ("tick", 44, high + 16, scale(counts)))
    words = "".join(f'<text class="{kind}" x="{x}" y="{y:g}">{escape(said)}</text>' for kind, x, y, said in lines)
    body = drawing[len(DRAWN) :].replace(size[0], box, 1)
    first, _, rest = body.partition(">")
    return f'<svg xmlns="http://www.w3.org/2000/svg" {first}><style>{style()}</style>{ground}{words}{rest}\n'


def scale(counts: heat.Counts) -> str:
    starts = heat.edges(heat.shown(counts))
    return f"samples in a cell, from light to dark: none, {', '.join(f'{start} and more' for start in starts)}"


def style() -> str:
    """The colours are those of the page."""
    light = asset("style.css").partition("}")[0]
    colour = dict(re.findall(r"--([a-z]+\d?):(#[0-9a-f]+)", light))
    levels = "".join(f".h{k}{{fill:{colour[f'h{k}']}}}" for k in range(1, heat.LEVELS + 1))
    return (
        f"text{{font-family:system-ui,sans-serif}}.tick,.title{{font-size:13px;fill:{colour['soft']}}}"
        f".head{{font-size:16px;fill:{colour['ink']}}}.middle{{text-anchor:middle}}.end{{text-anchor:end}}"
        f".ground{{fill:{colour['bg']}}}.floor{{fill:{colour['h0']}}}.bars{{fill:{colour['soft']}}}"
        f".cells{{shape-rendering:crispEdges}}.cursor{{visibility:hidden}}{levels}"
    )
