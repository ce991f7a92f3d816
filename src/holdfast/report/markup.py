"""Pieces of HTML that several sections use."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from holdfast.report.charts import swatch
from holdfast.report.gather import Group

NOTHING = "\N{EN DASH}"  # a cell without a value
TIMES = "\N{MULTIPLICATION SIGN}"


def named(group: Group, index: int) -> str:
    return f'<span class="name">{swatch(index)}<span>{escape(group.label)}</span></span>'


def stacked(text: str) -> str:
    """A mean with its deviation below it."""
    mean, sign, rest = text.partition(" ± ")
    return f'{mean} <span class="under">± {rest}</span>' if sign else mean


def table(head: Sequence[str], body: Sequence[Sequence[str]], kind: str = "") -> str:
    """Cells are HTML. Each repeats its column's name for narrow screens, where a row becomes a block."""
    columns = "".join(f'<th scope="col" role="columnheader">{cell}</th>' for cell in head)
    lines = ""
    for first, *others in body:
        cells = "".join(
            f'<td role="cell"><span class="of" aria-hidden="true">{name}</span><span>{cell}</span></td>'
            for name, cell in zip(head[1:], others, strict=True)
        )
        lines += f'<tr role="row"><th scope="row" role="rowheader">{first}</th>{cells}</tr>'
    return (
        f'<div class="wide-table"><table role="table" class="{kind}">'
        f'<thead role="rowgroup"><tr role="row">{columns}</tr></thead>'
        f'<tbody role="rowgroup">{lines}</tbody></table></div>'
    )


def shell(text: str) -> str:
    """A command, with a button to copy it."""
    button = '<button type="button" class="copy" hidden>Copy</button>'
    words = (f'<span class="option">{escape(w)}</span>' if w.startswith("--") else escape(w) for w in text.split(" "))
    return f'<div class="shell"><pre tabindex="0"><code>{" ".join(words)}</code></pre>{button}</div>'
