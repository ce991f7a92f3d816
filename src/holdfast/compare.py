"""Methods against each other: the same clients, batches and start for every method of a seed; one table.

The folder of a comparison holds `comparison.json` and one folder a run, so a comparison that was stopped goes on where
it was, and a run that failed stops no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast import checkpoint
from holdfast.errors import Failed, Refused
from holdfast.experiment import Run, ready
from holdfast.folder import opened, trim
from holdfast.options import attempt
from holdfast.results import go, merged
from holdfast.simulate import Row
from holdfast.statistics import interval, mean, shown
from holdfast.text import parse

FILE = "comparison.json"
Tell = Callable[[str], None]
Each = Callable[[Row, int, str], None]


@dataclass(frozen=True)
class Entry:
    """One run of a comparison."""

    method: str
    seed: int
    folder: str
    rows: list[Row]
    failure: str = ""


@dataclass(frozen=True)
class Comparison:
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    target: float | None
    entries: tuple[Entry, ...]
    done: bool

    def of(self, method: str) -> list[Entry]:
        return [e for e in self.entries if e.method == method and not e.failure and scores(e)]


def compare(
    base: Run, methods: Sequence[str], seeds: int, out: Path, resume: bool, target: float | None, tell: Tell, each: Each
) -> Comparison:
    """Runs every method with every seed. All methods and options are checked before the first run begins."""
    runs = planned(base, methods, seeds)
    begin(out, resume, runs)
    entries: list[Entry] = []
    heard: set[str] = set()

    def once(text: str) -> None:
        """Why an engine was taken is said for the first run only."""
        why = text.partition(": ")[2]
        if why not in heard:
            tell(text)
        heard.add(why)

    for run, folder in runs:
        entry, done = one(run, out / folder, folder, once, each)
        entries.append(entry)
        if not done:
            break
    texts = tuple(dict.fromkeys(str(run.method) for run, _ in runs))
    found = Comparison(
        texts, tuple(range(base.seed, base.seed + seeds)), target, tuple(entries), len(entries) == len(runs)
    )
    checkpoint.replace(out / FILE, (json.dumps(told(found), indent=1) + "\n").encode())
    return found


def planned(base: Run, methods: Sequence[str], seeds: int) -> list[tuple[Run, str]]:
    """The runs and their folders, in an order that gives every method its first seed early."""
    problems: list[str] = []
    texts: list[str] = []
    for text in methods:
        try:
            texts.append(str(parse(text)))
        except Refused as refused:
            problems += refused.problems
    double = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
    problems += [f"{text} stands {texts.count(text)} times among the methods; keep one" for text in double]
    if seeds < 1:
        problems.append(f"seeds={seeds} must be at least 1")
    if not methods:
        problems.append('there is nothing to compare; give --methods "fedavg; scaffold"')
    problems += checked(base, texts)
    if problems:
        raise Refused(*dict.fromkeys(problems))
    return [
        (replace(base, method=text, seed=base.seed + s), f"{slug(text)}/seed-{base.seed + s}")
        for s in range(seeds)
        for text in texts
    ]


def checked(base: Run, texts: list[str]) -> list[str]:
    """What would stop a run before its first round, for each method on the data and model of this comparison."""
    problems: list[str] = []
    for text in texts or ["fedavg"]:
        try:
            ready(replace(base, method=text))
        except Refused as refused:
            problems += refused.problems
    return problems


def slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.=_-]+", "_", text).strip("_")[:80]


def begin(out: Path, resume: bool, runs: list[tuple[Run, str]]) -> None:
    if not resume and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"{out} exists and is not an empty folder; continue with --resume, or choose another --out")
    if resume and not out.is_dir():
        raise Refused(f"{out} is not the folder of a comparison; leave --resume out to start one there")
    if resume:
        known = {folder.split("/")[0] for _, folder in runs}
        strange = sorted(p.name for p in out.iterdir() if p.is_dir() and p.name not in known)
        if strange:
            raise Refused(
                f"{out} holds runs of other methods ({', '.join(strange)}); name them too, or choose another --out"
            )
        problems: list[str] = []
        for run, folder in runs:
            if (out / folder / "run.toml").exists():
                attempt(problems, lambda run=run, at=out / folder: merged(run, opened(at)[0], None, at))
        if problems:
            raise Refused(*dict.fromkeys(problems))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot write to {out}: {error.strerror}; choose another --out") from error


def one(run: Run, folder: Path, name: str, tell: Tell, each: Each) -> tuple[Entry, bool]:
    """A run that is begun, continued, or done already; and whether it came to an end."""
    known = (folder / "run.toml").exists()
    if known and len(rows := trim(folder, run.rounds)) == run.rounds:
        return Entry(str(run.method), run.seed, name, rows), True
    label = f"{run.method}, seed {run.seed}"
    try:
        result = go(run, folder, known, None, tell, lambda row, rounds: each(row, rounds, label))
    except Failed as failed:
        tell(f"{label}: {failed}")
        return Entry(str(run.method), run.seed, name, [], str(failed)), True
    return Entry(str(run.method), run.seed, name, result.metrics), result.done


def scores(entry: Entry) -> list[float]:
    """Accuracy of the evaluated rounds: the server's model, or the clients' own where layers are private."""
    name = "personal_accuracy" if entry.rows and "personal_accuracy" in entry.rows[-1] else "accuracy"
    return [row[name] for row in entry.rows if row.get(name) is not None]


def last_ten(entry: Entry) -> float:
    return mean(scores(entry)[-10:])


def aim(found: Comparison) -> float | None:
    """The target: the one asked for, or what the first method reaches (mean of its last ten rounds, over seeds)."""
    first = found.of(found.methods[0])
    return found.target if found.target is not None else mean([last_ten(e) for e in first]) if first else None


def reached(entry: Entry, target: float) -> tuple[int, int] | None:
    """The first evaluated round at the target, and all bytes up to it; None if it was never reached."""
    spent = 0
    for row in entry.rows:
        spent += row["bytes_down"] + row["bytes_up"]
        score = row.get("accuracy", row.get("personal_accuracy"))
        if score is not None and score >= target:
            return row["round"], spent
    return None


def table(found: Comparison) -> list[dict[str, str]]:
    """One row a method: accuracies in percent as mean ± sd over seeds, and the way to the target."""
    target, rows = aim(found), list[dict[str, str]]()
    for method in found.methods:
        runs = found.of(method)
        hits = [hit for e in runs if target is not None and (hit := reached(e, target))]
        failed = sum(e.method == method and bool(e.failure) for e in found.entries)
        row = {
            "method": method,
            "seeds": str(len(runs)) + (f" ({failed} failed)" if failed else ""),
            "best": shown([max(scores(e)) for e in runs], 100),
            "last": shown([scores(e)[-1] for e in runs], 100),
            "last ten": shown([last_ten(e) for e in runs], 100),
            "against first": against(found, method),
        }
        if target is not None:
            some = f" ({len(hits)} of {len(runs)})" if len(hits) < len(runs) else ""
            row[f"rounds to {100 * target:.1f}"] = (f"{mean([r for r, _ in hits]):.0f}" if hits else "never") + some
            row["MB to it"] = f"{mean([b for _, b in hits]) / 1e6:.1f}" if hits else "-"
        rows.append(row)
    return rows


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
    """Which methods differ from the first, said plainly; 'against first' is a 95 % interval of paired differences."""
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
    runs = [{"method": e.method, "seed": e.seed, "folder": e.folder, "failure": e.failure} for e in found.entries]
    about = {"methods": found.methods, "seeds": found.seeds, "target": aim(found), "done": found.done}
    return about | {"runs": runs, "table": table(found), "verdict": verdict(found)}
