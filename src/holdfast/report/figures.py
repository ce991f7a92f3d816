"""What a report counts: scores over seeds, curves, bytes, and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.headline import TAIL
from holdfast.report.gather import Group, RunView, is_number

MINUS = "\N{MINUS SIGN}"
TO = "\N{EN DASH}"  # between the ends of a range


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (ddof 1) of n values; no deviation of a single one."""

    mean: float
    sd: float | None
    n: int

    @staticmethod
    def of(values: Iterable[float]) -> Spread | None:
        found = list(values)
        if not found:
            return None
        mean = math.fsum(found) / len(found)
        if len(found) == 1:
            return Spread(mean, None, 1)
        return Spread(mean, math.sqrt(math.fsum((v - mean) ** 2 for v in found) / (len(found) - 1)), len(found))

    def text(self, form: Callable[[float], str]) -> str:
        return form(self.mean) + ("" if self.sd is None else f" ± {form(self.sd)}")


@dataclass(frozen=True)
class Point:
    """Where a curve is at one round: the mean over the runs that have a value there."""

    round: int
    x: float
    y: Spread


def best(view: RunView) -> float:
    return max(score for _, score in view.scores)


def last(view: RunView) -> float:
    return view.scores[-1][1]


def closing(view: RunView) -> float:
    """The mean of the last ten evaluated rounds."""
    tail = [score for _, score in view.scores[-TAIL:]]
    return math.fsum(tail) / len(tail)


def over_seeds(group: Group, value: Callable[[RunView], float]) -> Spread | None:
    return Spread.of(value(view) for view in group.runs if view.scores)


def reached(view: RunView, target: float) -> tuple[int, int] | None:
    """The first round that was evaluated at the target or above, and the bytes up to then."""
    sent = 0
    for row in view.metrics:
        sent += row["bytes_down"] + row["bytes_up"]
        if is_number(row.get(view.metric)) and row[view.metric] >= target:
            return row["round"], sent
    return None


def curve(group: Group, key: str, against_bytes: bool = False) -> list[Point]:
    """One point a round that has the figure in any run; `x` is the round, or the mean bytes sent up to it."""
    values: dict[int, list[tuple[float, float]]] = {}
    for view in group.runs:
        sent = 0
        for row in view.metrics:
            sent += row["bytes_down"] + row["bytes_up"]
            if is_number(row.get(key)):
                values.setdefault(row["round"], []).append((sent if against_bytes else row["round"], row[key]))
    points: list[Point] = []
    for number, pairs in sorted(values.items()):
        x, y = Spread.of(x for x, _ in pairs), Spread.of(y for _, y in pairs)
        if x and y:
            points.append(Point(number, x.mean, y))
    return points


def score(value: float) -> str:
    """A share in percent, without the sign."""
    return f"{100 * value:.2f}"


def percent(value: float) -> str:
    """A share as a tick or a target."""
    return plain(round(100 * value, 8))


def size(value: float) -> str:
    """Bytes in decimal units, to three figures or more."""
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if value >= 10**power:
            scaled = value / 10**power
            return f"{scaled:.0f} {unit}" if scaled >= 1000 else f"{scaled:.3g} {unit}"
    return f"{value:.0f} B" if value == int(value) else f"{value:.1f} B"


def plain(value: float) -> str:
    """A tick or a setting: no trailing zeros, no exponent where a person would write none."""
    text = f"{value:.10g}"
    return text.replace("-", MINUS, 1) if value < 0 else text


def tenth(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def listed(items: Sequence[object], most: int = 8) -> str:
    """a, b and c; a long list says how many more there are."""
    texts = [str(item) for item in items]
    if len(texts) > most:
        texts = [*texts[: most - 1], f"{len(texts) - most + 1} more"]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]])) if texts else ""


def ranges(numbers: Iterable[int]) -> str:
    """1–3, 7: whole numbers, runs of them joined."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [str(lo) if lo == hi else f"{lo}{TO}{hi}" for lo, hi in spans]
    return ", ".join(texts[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")


def several(number: int, name: str) -> str:
    return f"{number} {name}" + ("" if number == 1 else "s")
