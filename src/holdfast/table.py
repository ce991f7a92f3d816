"""What came of a comparison: one row a method, and what may be said about their differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast import headline
from holdfast.report.figures import size
from holdfast.rows import WRECK, broke
from holdfast.simulate import Row
from holdfast.statistics import interval, mean, shown

FOOTNOTE = (
    " in %, mean ± sd over seeds; last ten: mean of the last ten evaluated rounds;\n"
    "against first: mean of the differences of last ten, paired by seed, ± a 95 % interval"
)


@dataclass(frozen=True)
class Entry:
    """One run of a comparison; `method` is the text by which it was asked for."""

    method: str
    seed: int
    folder: str
    rows: list[Row]
    failure: str = ""
    done: bool = True  # False if it was stopped before its last round


@dataclass(frozen=True)
class Comparison:
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    target: float | None
    entries: tuple[Entry, ...]
    done: bool

    def of(self, method: str) -> list[Entry]:
        """The runs of a method that count: those that did all their rounds."""
        return [e for e in self.entries if e.method == method and e.done and not e.failure and scores(e)]

    def failed(self, method: str) -> int:
        return sum(e.method == method and bool(e.failure) for e in self.entries)


def scores(entry: Entry) -> list[float]:
    """What the run is judged by, of the evaluated rounds."""
    return headline.curve(entry.rows, headline.metric(entry.rows))


def last_ten(entry: Entry) -> float:
    return mean(scores(entry)[-headline.TAIL :])


def finetuned(entry: Entry) -> float | None:
    return entry.rows[-1].get("finetuned_accuracy")


def aim(found: Comparison) -> float | None:
    """The target: the one asked for, or what the first method reaches (mean of its last ten rounds, over seeds)."""
    first = found.of(found.methods[0])
    return found.target if found.target is not None else mean([last_ten(e) for e in first]) if first else None


def reached(entry: Entry, target: float) -> tuple[int, int] | None:
    """The first evaluated round at the target, and all bytes up to it; None if it was never reached."""
    spent, name = 0, headline.metric(entry.rows)
    for row in entry.rows:
        spent += row["bytes_down"] + row["bytes_up"]
        score = row.get(name)
        if score is not None and score >= target:
            return row["round"], spent
    return None


def table(found: Comparison) -> list[dict[str, str]]:
    """One row a method: what it is judged by, in percent as mean ± sd over seeds, and the way to the target."""
    target = aim(found)
    tuned = any(finetuned(e) is not None for method in found.methods for e in found.of(method))
    rows = [row_of(found, method, tuned) for method in found.methods]
    if target is not None:
        for row in rows:
            row |= way(found.of(row["method"]), target)
    return rows


def row_of(found: Comparison, method: str, tuned: bool) -> dict[str, str]:
    runs = found.of(method)
    row = {
        "method": method,
        "seeds": counted(found, method),
        "best": shown([max(scores(e)) for e in runs], 100),
        "last": shown([scores(e)[-1] for e in runs], 100),
        "last ten": shown([last_ten(e) for e in runs], 100),
        "against first": against(found, method),
    }
    if tuned:
        row["fine-tuned"] = shown([value for e in runs if (value := finetuned(e)) is not None], 100)
    return row


def footnote(found: Comparison) -> str:
    """By what the methods are judged; one that is judged by something else than the first is named."""
    by = {method: headline.metric(runs[0].rows) for method in found.methods if (runs := found.of(method))}
    usual = next(iter(by.values()), headline.METRICS[-1])
    odd = [f"{method} by {headline.label(name)}" for method, name in by.items() if name != usual]
    return headline.label(usual) + (f" ({', '.join(odd)})" if odd else "") + FOOTNOTE


def further(found: Comparison) -> list[dict[str, str]]:
    """What else was measured, one row a method: means of the last ten evaluated rounds, in percent, over seeds."""
    each = {method: [headline.further(e.rows) for e in found.of(method)] for method in found.methods}
    names = [name for name in headline.FURTHER if any(name in run for runs in each.values() for run in runs)]
    return [
        {"method": method, **{headline.label(n): shown([run[n] for run in runs if n in run], 100) for n in names}}
        for method, runs in each.items()
        if names
    ]


def counted(found: Comparison, method: str) -> str:
    """'2 (1 failed, 1 unfinished, 1 diverged)': of the seeds asked for; what diverged is counted."""
    failed = found.failed(method)
    ended = sum(e.method == method and e.done for e in found.entries)
    broken = len(diverged(found, method))
    left = {"failed": failed, "unfinished": len(found.seeds) - ended, "diverged": broken}
    said = ", ".join(f"{count} {what}" for what, count in left.items() if count)
    return str(ended - failed) + (f" ({said})" if said else "")


def diverged(found: Comparison, method: str) -> list[Entry]:
    """Its runs that did all their rounds with figures that mean nothing."""
    return [e for e in found.entries if e.method == method and e.done and not e.failure and broke(e.rows)]


def way(runs: list[Entry], target: float) -> dict[str, str]:
    """How many rounds and how much traffic it took, over the runs that came there."""
    hits = [hit for e in runs if (hit := reached(e, target))]
    name = f"rounds to {100 * target:.1f}"
    if not hits:
        return {name: "never" if runs else "-", "traffic to it": "-"}
    some = f" ({len(hits)} of {len(runs)})" if len(hits) < len(runs) else ""
    rounds, sent = mean([r for r, _ in hits]), mean([b for _, b in hits])
    return {name: f"{rounds:.{int(len(hits) > 1)}f}{some}", "traffic to it": size(sent)}


def differences(found: Comparison, method: str) -> list[float]:
    """Of the last-ten means, seed by seed, from the first method."""
    first = {e.seed: last_ten(e) for e in found.of(found.methods[0])}
    return [last_ten(e) - first[e.seed] for e in found.of(method) if e.seed in first]


def against(found: Comparison, method: str) -> str:
    values = differences(found, method)
    if method == found.methods[0] or not values:
        return "-"
    half = interval(values)
    return f"{100 * mean(values):+.2f}" + ("" if half is None else f" ± {100 * half:.2f}")


def verdict(found: Comparison) -> str:
    """What may be said of the table, plainly."""
    broken = [method for method in found.methods if diverged(found, method)]
    said = f" Diverged ({WRECK}), so its figures mean nothing: {'; '.join(broken)}." if broken else ""
    return differ(found) + said


def differ(found: Comparison) -> str:
    """Which methods differ from the first; 'against first' is a 95 % interval of paired differences."""
    if not found.done:
        ended, asked = sum(e.done for e in found.entries), len(found.methods) * len(found.seeds)
        return f"The comparison is not complete: {ended} of {asked} runs have ended, and only these are counted."
    clear: list[str] = []
    for method in found.methods[1:]:
        values = differences(found, method)
        half = interval(values) if values else None
        if half is not None and abs(mean(values)) > half:
            clear.append(f"{method} is {'above' if mean(values) > 0 else 'below'} {found.methods[0]}")
    if len(found.seeds) < 2:
        return "One seed: nothing can be said about differences."
    if not clear:
        return f"No method differs from {found.methods[0]} by more than these {len(found.seeds)} seeds scatter."
    return (
        "; ".join(clear) + f" (95 % interval of paired differences, {len(found.seeds)} seeds, not corrected for many)."
    )


def told(found: Comparison) -> dict[str, Any]:
    """What `comparison.json` holds."""
    keys = ("method", "seed", "folder", "failure", "done")
    runs = [{key: getattr(entry, key) for key in keys} for entry in found.entries]
    about = {"methods": found.methods, "seeds": found.seeds, "target": aim(found), "done": found.done}
    return about | {"runs": runs, "table": table(found), "further": further(found), "verdict": verdict(found)}
