"""The split as a picture: samples of each class at each client, and the size of every client above it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import median

from holdfast.data.told import Measures, clients, marginals, unlike
from holdfast.report.charts import island
from holdfast.report.figures import TO, several

CLIENTS = 100  # drawn at most
CLASSES = 100
LEVELS = 6

Counts = Sequence[Sequence[int]]  # [N][C]


def edges(counts: Counts) -> list[int]:
    """The smallest count of every level: steps by a constant factor, as counts of a skewed split are spread."""
    most = max((n for row in counts for n in row), default=0)
    return sorted({max(1, round(most ** (k / LEVELS))) for k in range(LEVELS)}) if most else []


def level(count: int, starts: Sequence[int]) -> int:
    """0 for none, else 1 and up."""
    return sum(count >= start for start in starts) if count else 0


def heat_map(counts: Counts, style: str, width: int) -> str:
    """Clients from left to right, classes from top to bottom; sizes above, unless they are all the same."""
    drawn = shown(counts)
    clients, classes = len(drawn), len(drawn[0])
    left, top, bars = 44, 8, 52 if len({sum(row) for row in counts[:CLIENTS]}) > 1 else -6
    tall = 18 if classes <= 20 else max(4, 360 // classes)
    start, end = top + bars + 6, top + bars + 6 + classes * tall
    wide = (width - left - 8) / clients
    inside = f'transform="translate({left} {start}) scale({wide:.4f} {tall})"'
    place = f"{left} {wide:.4f} {start} {tall} {clients} {classes}"
    label = f"Samples of {classes} classes at {clients} clients. Arrow keys read the cells."
    return "".join([
        f'<svg class="chart heat {style}" viewBox="0 0 {width} {end + 44}" role="img" tabindex="0" ',
        f'aria-label="{label}" data-cells="{place}">',
        sizes([sum(row) for row in counts[:CLIENTS]], left, top, bars, wide) if bars > 0 else "",
        f'<rect class="floor" x="{left}" y="{start}" width="{wide * clients:.1f}" height="{classes * tall}"/>',
        f'<g class="cells" {inside}>{cells(drawn, edges(drawn))}</g>',
        *(
            f'<text class="tick end" x="{left - 7}" y="{start + c * tall + tall / 2 + 4:g}">{c}</text>'
            for c in range(0, classes, every(classes, 12))
        ),
        *(
            f'<text class="tick middle" x="{left + (i + 0.5) * wide:.1f}" y="{end + 17}">{i}</text>'
            for i in range(0, clients, every(clients, 11 if width > 600 else 6))
        ),
        f'<text class="title middle" x="{left + wide * clients / 2:.1f}" y="{end + 38}">client</text>',
        f'<text class="title middle" transform="translate(12 {(start + end) / 2:g}) rotate(-90)">class</text>',
        f'<rect class="cursor" x="0" y="0" width="{max(wide, 3):.2f}" height="{tall}"/></svg>',
    ])  # fmt: skip


def shown(counts: Counts) -> Counts:
    """What is drawn of it."""
    return [list(row[:CLASSES]) for row in counts[:CLIENTS]]


def cells(drawn: Counts, starts: Sequence[int]) -> str:
    """One path a level, in units of a cell; neighbours of a level are one piece."""
    paths: dict[int, list[str]] = {}
    for i, row in enumerate(drawn):
        for c, count in enumerate(row):
            if count:
                paths.setdefault(level(count, starts), []).append(f"M{i} {c}h1v1h-1z")
    return "".join(f'<path class="h{shade(k, len(starts))}" d="{"".join(d)}"/>' for k, d in sorted(paths.items()))


def shade(number: int, levels: int) -> int:
    """The style sheet's colour, 1 to LEVELS, of the k-th of so many levels."""
    return LEVELS if levels == 1 else 1 + round((number - 1) * (LEVELS - 1) / (levels - 1))


def sizes(totals: Sequence[int], left: int, top: int, height: int, wide: float) -> str:
    most = max(totals, default=0)
    if not most:
        return ""
    gap = min(0.15 * wide, 1.0)
    bars = ""
    for i, n in enumerate(totals):
        tall = round(height * n / most, 1)
        bars += f"M{left + i * wide + gap / 2:.1f} {top + height}v{-tall}h{wide - gap:.1f}v{tall}z" if n else ""
    return (
        f'<path class="bars" d="{bars}"/><text class="tick end" x="{left - 7}" y="{top + 8}">{most}</text>'
        f'<text class="tick end" x="{left - 7}" y="{top + height}">0</text>'
    )


def every(count: int, most: int) -> int:
    """A round step that leaves at most so many labels."""
    return next(step for k in range(9) for step in (10**k, 2 * 10**k, 5 * 10**k) if count / step <= most)


def scale(counts: Counts) -> str:
    """The colours with the numbers of samples that they stand for."""
    drawn = shown(counts)
    starts, most = edges(drawn), max((n for row in drawn for n in row), default=0)
    items = [
        '<li><svg class="key h0" viewBox="0 0 14 14" aria-hidden="true"><rect width="14" height="14"/></svg>0</li>'
    ]
    for k, start in enumerate(starts, 1):
        final = starts[k] - 1 if k < len(starts) else most
        text = str(start) if start == final else f"{start}{TO}{final}"
        items.append(
            f'<li><svg class="key h{shade(k, len(starts))}" viewBox="0 0 14 14" aria-hidden="true">'
            f'<rect width="14" height="14"/></svg>{text}</li>'
        )
    return f'<ul class="scale" aria-label="samples in a cell"><li>samples in a cell</li>{"".join(items)}</ul>'


def said(counts: Counts, measures: Measures | None) -> str:
    if not measures:
        return told(counts)
    made = f"{clients(measures)}, made when they come. Measured and drawn are the first of them: "
    text = f" All together hold {marginals(measures)}. Measures: {unlike(measures, len(counts[0]))}."
    return escape(made if "measured" in measures else "") + told(counts) + escape(text)


def told(counts: Counts) -> str:
    """Sizes and empty clients in words, over all clients, also those that are not drawn."""
    totals = [sum(row) for row in counts]
    least, most = min(totals), max(totals)
    held = [sum(n > 0 for n in row) for row in counts if any(row)]
    empty = sum(n == 0 for n in totals)
    classes = f"{len(counts[0])} class{'' if len(counts[0]) == 1 else 'es'}"
    text = f"{several(len(counts), 'client')}, {sum(totals):,} samples in {classes}; "
    text += f"a client holds {least} to {most} (median {median(totals):g})" if least < most else f"each holds {least}"
    text += f", of {sum(held) / len(held):.1f} classes in the mean" if held else ""
    text += f"; {several(empty, 'client')} {'is' if empty == 1 else 'are'} empty." if empty else "; no client is empty."
    beyond = []
    if len(counts) > CLIENTS:
        beyond.append(f"the first {CLIENTS} clients")
    if len(counts[0]) > CLASSES:
        beyond.append(f"the first {CLASSES} classes")
    return escape(text + (f" Drawn are {' and '.join(beyond)}." if beyond else ""))


def figure(counts: Counts, measures: Measures | None = None) -> str:
    """With the measures that newer runs keep of their split."""
    drawings = heat_map(counts, "wide", 980) + heat_map(counts, "narrow", 380)
    return (
        f'<figure><p class="said">{said(counts, measures)}</p>'
        f'<div class="plot">{drawings}<div class="tip" hidden></div></div>'
        f"{scale(counts)}{island({'kind': 'cells', 'counts': shown(counts)})}</figure>"
    )
