"""Methods against each other: the same clients, batches and start for every method of a seed; one table.

The folder of a comparison holds `compare.toml` (what was asked), `comparison.json` (what came of it) and one folder a
run, so a comparison that was stopped goes on where it was, and a run that failed stops no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast import agreed, checkpoint
from holdfast.agreed import Wanted
from holdfast.data.splits import Split
from holdfast.errors import Failed, Refused
from holdfast.experiment import Run, ready
from holdfast.folder import alone, leftover, made_folder, sound
from holdfast.options import attempt
from holdfast.recorded import ADVICE, opened
from holdfast.results import go, merged
from holdfast.rows import holes
from holdfast.simulate import Row
from holdfast.table import Comparison, Entry, told

FILE = "comparison.json"
Tell = Callable[[str], None]
Each = Callable[[Row, int, str, str], None]  # the row, of how many rounds, the run's name, '5 of 12'
Planned = tuple[str, Run, str]  # the method as it was written, its run, the folder


def compare(values: Mapping[str, Any], out: Path, resume: bool, tell: Tell, each: Each) -> Comparison:
    """Runs every method with every seed. All methods and options are checked before the first run begins.

    `values` are the options that were given: `methods`, `seeds`, `target` and the fields of a run.
    """
    wanted = agreed.resumed(out, values) if resume else Wanted.of(values)
    runs = planned(wanted)
    begin(out, resume, runs)
    with alone(out):
        store(out, wanted)
        entries = carried(runs, out, tell, each)
        done = len(entries) == len(runs) and all(entry.done for entry in entries)
        seeds = tuple(range(wanted.base.seed, wanted.base.seed + wanted.seeds))
        found = Comparison(wanted.methods, seeds, wanted.target, tuple(entries), done)
        checkpoint.replace(out / FILE, (json.dumps(told(found), indent=1) + "\n").encode())
    return found


def store(out: Path, wanted: Wanted) -> None:
    try:
        checkpoint.replace(out / agreed.FILE, agreed.write(wanted).encode())
    except OSError as error:
        raise Refused(f"cannot write to {out}: {error.strerror}; make it writable, or choose another --out") from error


def carried(runs: list[Planned], out: Path, tell: Tell, each: Each) -> list[Entry]:
    """The runs one after another, until somebody asks to stop."""
    entries: list[Entry] = []
    heard: set[str] = set()

    def once(text: str) -> None:
        """Why an engine was taken is said for the first run only."""
        why = text.partition(": ")[2] or text
        if why not in heard:
            tell(text)
        heard.add(why)

    for i, (method, run, folder) in enumerate(runs, 1):

        def told(row: Row, rounds: int, label: str, turn: str = f"{i} of {len(runs)}") -> None:
            each(row, rounds, label, turn)

        entry, stopped = one(method, run, out / folder, folder, once, told)
        entries.append(entry)
        if stopped:
            break
    return entries


def planned(wanted: Wanted) -> list[Planned]:
    """The runs and their folders, in an order that gives every method its first seed early."""
    problems = wanted.problems() + checked(wanted.base, wanted.texts)
    if problems:
        raise Refused(*dict.fromkeys(problems))
    names = folders(wanted.methods)
    return [
        (method, replace(wanted.base, method=method, seed=seed), f"{name}/seed-{seed}")
        for seed in range(wanted.base.seed, wanted.base.seed + wanted.seeds)
        for method, name in zip(wanted.methods, names, strict=True)
    ]


def checked(base: Run, texts: list[str]) -> list[str]:
    """What would stop a run before its first round, for each method on the data and model of this comparison."""
    problems: list[str] = []
    for text in texts or ["fedavg"]:
        attempt(problems, lambda text=text: ready(replace(base, method=text)))
    return problems


def folders(methods: tuple[str, ...]) -> list[str]:
    """A name for each: the letters of its text that every file system takes."""
    names: list[str] = []
    for method in methods:
        name = re.sub(r"[^A-Za-z0-9.=_-]+", "_", method).strip("_")[:80]
        names.append(name if name not in names else f"{name[:70]}_{len(names)}")
    return names


def begin(out: Path, resume: bool, runs: list[Planned]) -> None:
    """Makes the folder, or finds in it nothing but the runs of this comparison."""
    if not resume and out.exists() and (not out.is_dir() or any(not leftover(path) for path in out.iterdir())):
        held = (out / agreed.FILE).is_file()
        said = "holds a comparison; continue with --resume, or" if held else "exists and is not an empty folder;"
        raise Refused(f"{out} {said} choose another --out")
    problems: list[str] = []
    for _, run, folder in runs:
        stored = attempt([], lambda at=out / folder: opened(at))  # a damaged one fails when its turn comes
        if stored:
            attempt(problems, lambda run=run, at=out / folder, old=stored: merged(run, old[0], None, at, old[1]))
    if problems:
        raise Refused(*dict.fromkeys(problems), advice="restore those runs, or start anew with another --out")
    made_folder(out)


def one(
    method: str, run: Run, folder: Path, name: str, tell: Tell, each: Callable[[Row, int, str], None]
) -> tuple[Entry, bool]:
    """A run that is begun, continued, or done already; and whether somebody asked to stop. What fails is told."""
    label = f"{method}, seed {run.seed}"
    try:
        known = folder.is_dir() and any(not leftover(path) for path in folder.iterdir())
        rows = ended(folder, run.rounds) if known else []
        if rows:
            return Entry(method, run.seed, name, rows), False
        result = go(run, folder, known, None, tell, lambda row, rounds: each(row, rounds, label))
    except (Failed, Refused) as failed:
        tell(f"{label}: {failed}")
        return Entry(method, run.seed, name, [], str(failed)), False
    if result.remark:
        tell(f"{label} {result.remark}")
    return Entry(method, run.seed, name, result.metrics, done=result.done), result.stopped


def ended(folder: Path, rounds: int) -> list[Row]:
    """The rows of a run that has done all its rounds; none where it has to go on. Figures must not be lost."""
    opened(folder)
    rows, split = sound(folder), folder / "split.json"
    if split.exists():
        Split.load(split)
    kept = checkpoint.whole(folder / "checkpoint")
    if kept and (lacks := holes(rows, int(kept[-1].name))):
        raise Failed(f"{folder / 'metrics.jsonl'} {lacks}; {ADVICE}")
    return rows if rows and rows[-1]["round"] >= rounds and split.exists() else []
