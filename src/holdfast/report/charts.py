"""Line charts and seed strips as SVG text; colours, sizes of type and themes are the style sheet's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from holdfast.report.figures import Point, percent, plain, score

COLOURS = 8
MARKERS = 7  # prime to COLOURS: 56 series before a pair of colour and marker comes again
DRAWN = 300  # points of a line; more are thinned, for no screen shows them
SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-3.5-3.5h7v7h-7z", "M0-4.8L4.6 3.6H-4.6z", "M0-5L5 0L0 5L-5 0z",
    "M0 4.8L4.6-3.6H-4.6z", "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "M0-5L1.5-1.5L5 0L1.5 1.5L0 5L-1.5 1.5L-5 0L-1.5-1.5z",
)  # fmt: skip


@dataclass(frozen=True)
class Series:
    name: str
    index: int
    points: Sequence[Point]
    runs: int  # in the group; a point with fewer is of an unfinished or unevaluated rest


@dataclass(frozen=True)
class Axis:
    title: str
    lo: float
    hi: float
    ticks: tuple[float, ...]
    text: Callable[[float], str] = plain


@dataclass(frozen=True)
class Frame:
    """Where the data is on the drawing."""

    width: int
    height: int
    x: Axis
    y: Axis
    left: int = 58
    top: int = 14
    right: int = 14
    bottom: int = 46

    def px(self, value: float) -> float:
        share = (value - self.x.lo) / (self.x.hi - self.x.lo)
        return round(self.left + share * (self.width - self.left - self.right), 1)

    def py(self, value: float) -> float:
        share = (value - self.y.lo) / (self.y.hi - self.y.lo)
        return round(self.height - self.bottom - share * (self.height - self.top - self.bottom), 1)


def colour(index: int) -> str:
    return f"c{index % COLOURS}"


def marker(index: int) -> str:
    return SHAPES[index % MARKERS]


def swatch(index: int) -> str:
    """A line with its marker, as beside a name."""
    return (
        f'<svg class="swatch {colour(index)}" viewBox="0 0 26 14" aria-hidden="true"><path class="line" d="M1 7h24"/>'
        f'<path class="mark" transform="translate(13 7)" d="{marker(index)}"/></svg>'
    )


def ticks(lo: float, hi: float, most: int = 6, whole: bool = False) -> tuple[float, ...]:
    """Round numbers that enclose lo and hi, at most so many steps apart."""
    if not hi > lo:
        hi, lo = (hi + 1, lo) if whole else (hi + max(abs(hi) * 0.05, 1e-3), lo - max(abs(lo) * 0.05, 1e-3))
    rough = (hi - lo) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= rough * (1 - 1e-9))
    if whole:
        step = max(1.0, float(math.ceil(step)))
    first, final = math.floor(lo / step + 1e-9), math.ceil(hi / step - 1e-9)
    return tuple(round(k * step, 12) for k in range(first, final + 1))


def enclosing(title: str, values: Sequence[float], text: Callable[[float], str] = plain, most: int = 6) -> Axis:
    found = ticks(min(values), max(values), most)
    return Axis(title, found[0], found[-1], found, text)


def within(title: str, lo: float, hi: float, most: int) -> Axis:
    """An axis that ends where the data does, for rounds."""
    hi = hi if hi > lo else lo + 1
    return Axis(title, lo, hi, tuple(t for t in ticks(lo, hi, most, whole=True) if lo <= t <= hi))


def chart(frame: Frame, series: Sequence[Series], name: str, style: str, target: float | None = None) -> str:
    """One drawing. `style` names the width it is meant for."""
    clip = f"clip-{name}-{style}"
    box = f'x="{frame.left}" y="{frame.top}" width="{frame.width - frame.left - frame.right}"'
    box += f' height="{frame.height - frame.top - frame.bottom}"'
    label = f"{frame.y.title} against {frame.x.title}. Arrow keys read the values."
    return "".join([
        f'<svg class="chart {style}" viewBox="0 0 {frame.width} {frame.height}" role="img" tabindex="0" ',
        f'aria-label="{escape(label)}" ',
        f'data-x="{frame.left} {frame.width - frame.right} {frame.x.lo!r} {frame.x.hi!r}" ',
        f'data-y="{frame.height - frame.bottom} {frame.top} {frame.y.lo!r} {frame.y.hi!r}">',
        f'<clipPath id="{clip}"><rect {box}/></clipPath>',
        *axes(frame),
        aim(frame, target),
        f'<g clip-path="url(#{clip})">', *(band(frame, s) for s in series), "</g>",
        *(line(frame, s) for s in series),
        f'<path class="guide" d="M0 {frame.top}V{frame.height - frame.bottom}"/><g class="spots"></g></svg>',
    ])  # fmt: skip


def axes(frame: Frame) -> Iterator[str]:
    floor, end = frame.height - frame.bottom, frame.width - frame.right
    for tick in frame.y.ticks:
        at = frame.py(tick)
        yield f'<path class="{"axis" if at == floor else "grid"}" d="M{frame.left} {at}H{end}"/>'
        yield f'<text class="tick end" x="{frame.left - 8}" y="{at + 4:g}">{escape(frame.y.text(tick))}</text>'
    for tick in frame.x.ticks:
        at = frame.px(tick)
        place = "end" if at > end - 12 else "middle"
        yield f'<path class="axis" d="M{at} {floor}v5"/>'
        yield f'<text class="tick {place}" x="{at}" y="{floor + 19}">{escape(frame.x.text(tick))}</text>'
    middle = (frame.left + end) / 2
    yield f'<text class="title middle" x="{middle:g}" y="{frame.height - 6}">{escape(frame.x.title)}</text>'


def aim(frame: Frame, target: float | None) -> str:
    if target is None or not frame.y.lo <= target <= frame.y.hi:
        return ""
    at, end = frame.py(target), frame.width - frame.right
    text = f'<text class="tick" x="{frame.left + 6}" y="{at - 6:g}">target {escape(percent(round(target, 4)))} %</text>'
    return f'<path class="target" d="M{frame.left} {at}H{end}"/>{text}'


def band(frame: Frame, series: Series) -> str:
    """Mean plus and minus one standard deviation, where there are two runs or more."""
    points = [(p.x, p.y.mean, p.y.sd) for p in thinned(series.points) if p.y.sd is not None]
    if len(points) < 2:
        return ""
    over = [f"{frame.px(x)} {frame.py(y + sd)}" for x, y, sd in points]
    under = [f"{frame.px(x)} {frame.py(y - sd)}" for x, y, sd in reversed(points)]
    return f'<path class="band g{series.index} {colour(series.index)}" d="M{"L".join(over + under)}z"/>'


def line(frame: Frame, series: Series) -> str:
    """The mean: solid where every run of the group has a value, dashed where only some have."""
    points = thinned(series.points)
    if not points:
        return ""
    at = [f"{frame.px(p.x)} {frame.py(p.y.mean)}" for p in points]
    paths, start = "", 0
    for i in range(1, len(points)):
        whole = points[i].y.n == series.runs
        if i + 1 == len(points) or (points[i + 1].y.n == series.runs) != whole:
            paths += f'<path class="line{"" if whole else " part"}" d="M{"L".join(at[start : i + 1])}"/>'
            start = i
    every = max(1, len(points) // 7)
    first = (series.index * max(1, every // 3)) % every if len(points) > 1 else 0
    shape = marker(series.index)
    marks = "".join(f'<path class="mark" transform="translate({p})" d="{shape}"/>' for p in at[first::every])
    return f'<g class="g{series.index} {colour(series.index)}">{paths}{marks}</g>'


def thinned(points: Sequence[Point]) -> list[Point]:
    every = math.ceil(len(points) / DRAWN)
    return list(points) if every <= 1 else [*points[:-1:every], points[-1]]


def data(kind: str, series: Sequence[Series], unit: str = "") -> str:
    """What the script reads: rounds, places and values, never markup."""
    rows = [
        {
            "name": s.name,
            "index": s.index,
            "points": [
                [p.round, short(p.x), short(p.y.mean), None if p.y.sd is None else short(p.y.sd), p.y.n]
                for p in thinned(s.points)
            ],
        }
        for s in series
    ]
    return island({"kind": kind, "unit": unit, "series": rows})


def island(value: object) -> str:
    """JSON inside a page: no character in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{text}</script>'


def short(value: float) -> float | int:
    value = float(f"{value:.5g}") if abs(value) < 1e5 else round(value)
    return int(value) if value == int(value) else value


def strip(values: Sequence[float], lo: float, hi: float, index: int) -> str:
    """Every seed as a dot on a common scale, and a bar at their mean."""
    span = (hi - lo) or 1.0

    def at(value: float) -> float:
        return round(6 + (value - lo) / span * 148, 1)

    dots = "".join(f'<circle cx="{at(v)}" cy="10" r="4"/>' for v in values)
    mean = f'<path d="M{at(math.fsum(values) / len(values))} 2v16"/>'
    told = escape(", ".join(map(score, values)))
    return (
        f'<svg class="strip {colour(index)}" viewBox="0 0 160 20" role="img" aria-label="{told}"><title>{told}</title>'
        f'<path class="rail" d="M6 10h148"/>{dots}{mean}</svg>'
    )
