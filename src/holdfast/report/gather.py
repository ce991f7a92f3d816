"""Run folders as they are read for a report: checked, and put together over their seeds."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import headline
from holdfast import rows as records
from holdfast.data.told import KEYS as MEASURES
from holdfast.errors import Refused

TABLES = ("run", "plan", "facts", "sheet")
SHEET = ("model", "down", "up", "memory", "state", "passes", "forwards", "individual")
METRICS = headline.METRICS[::-1]  # in the order of the page
ADVICE = "restore it, or leave that run out"
DEPTH = 2  # how far below a given folder runs are looked for


@dataclass(frozen=True)
class RunView:
    """One run's folder, read whole."""

    folder: Path
    run: dict[str, Any]
    plan: dict[str, Any]
    facts: dict[str, Any]
    sheet: dict[str, Any]
    metrics: list[dict[str, Any]]
    counts: list[list[int]]  # [N][C]; empty if the split was stored without them
    split_hash: str
    finished: bool
    split_seed: int | None = None
    measures: dict[str, Any] = field(default_factory=dict[str, Any])  # of the split; older folders have none

    @property
    def done(self) -> int:
        return self.metrics[-1]["round"]

    @property
    def seed(self) -> int:
        return self.run["seed"]

    @property
    def metric(self) -> str:
        """What the run was evaluated by; `accuracy` if it has not been evaluated yet."""
        return headline.metric(self.metrics)

    @property
    def scores(self) -> list[tuple[int, float]]:
        """Round and score, of the rounds that were evaluated."""
        return [(row["round"], row[self.metric]) for row in self.metrics if is_number(row.get(self.metric))]

    @property
    def broken(self) -> int:
        """The first round that diverged; 0 if none did."""
        return records.broke(self.metrics)

    @property
    def bytes(self) -> int:
        return sum(row["bytes_down"] + row["bytes_up"] for row in self.metrics)


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but the seed."""

    label: str
    runs: tuple[RunView, ...]

    @property
    def metric(self) -> str:
        return next((view.metric for view in self.runs if view.scores), METRICS[0])


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def load(folder: Path) -> RunView:
    """Reads one run's folder; what is wrong with it is named."""
    folder = Path(folder)
    if not (folder / "run.toml").is_file():
        raise Refused(f"{folder} is not the folder of a run: it has no run.toml; give the folder that --out named")
    tables = recipe(folder / "run.toml")
    metrics = rows(folder / "metrics.jsonl")
    if not metrics and any(folder.glob("checkpoint/[0-9]*")):
        raise Refused(f"{folder / 'metrics.jsonl'} has no row, and rounds were done; {ADVICE}")
    if not metrics:
        raise Refused(f"{folder} has no round done yet; go on with it by holdfast run --out {folder} --resume")
    split = stored_split(folder / "split.json")
    finished = metrics[-1]["round"] >= tables["run"]["rounds"]
    run, plan, facts, sheet = (tables[name] for name in TABLES)
    counts, seed = split.get("counts", []), split.get("seed")
    measures = split.get("measures", {})
    return RunView(folder, run, plan, facts, sheet, metrics, counts, split["hash"], finished, seed, measures)


def damaged(path: Path, reason: str) -> Refused:
    return records.damaged(path, reason, ADVICE)


def recipe(path: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(records.content(path, ADVICE))
    except tomllib.TOMLDecodeError as error:
        raise damaged(path, str(error)) from error
    problems = [f"it has no table [{name}]" for name in TABLES if not isinstance(tables.get(name), dict)]
    if not problems:
        run, sheet = tables["run"], tables["sheet"]
        problems += [f"[run] has no {key}" for key in ("method", "data", "split", "model") if key not in run]
        problems += [f"[run] has no whole number {key}" for key in ("rounds", "seed") if type(run.get(key)) is not int]
        problems += [f"[sheet] has no number {key}" for key in SHEET if not isinstance(sheet.get(key), int)]
    if problems:
        raise damaged(path, ", ".join(problems))
    return tables


def rows(path: Path) -> list[dict[str, Any]]:
    """One object a round, with the bytes that it took."""
    found = records.read(path, ADVICE)
    for number, row in enumerate(found, 1):
        if not all(is_number(row.get(key)) for key in ("bytes_down", "bytes_up")):
            raise damaged(path, f"line {number} has no bytes_down or bytes_up")
    return found


def stored_split(path: Path) -> dict[str, Any]:
    from holdfast.data import split_files  # which loads numpy; nothing else here does

    try:
        split = json.loads(records.content(path, ADVICE))
    except ValueError as error:
        raise damaged(path, "it is torn") from error
    try:
        split_files.read(path)
    except Refused as refused:
        raise damaged(path, str(refused)) from refused
    table = split.get("counts", [])
    sound = isinstance(table, list) and all(isinstance(row, list) for row in table)
    if not sound or len({len(row) for row in table}) > 1 or any(type(n) is not int or n < 0 for r in table for n in r):
        raise damaged(path, "its counts are not one list of numbers a client, all of one length")
    measures = split.get("measures", {})
    whole = isinstance(measures, dict) and all(is_number(value) for value in measures.values())
    if not whole or (measures and not measures.keys() >= MEASURES):
        raise damaged(path, "its measures are not the numbers that a run keeps of a split")
    return split


def find(paths: Sequence[Path], tell: Callable[[str], None] | None = None) -> list[RunView]:
    """The runs that are named, and those up to two levels below a folder that is none.

    With `tell`, a run found below a folder that cannot be read is told and left out; one that was named never is.
    """
    views: dict[Path, RunView] = {}
    problems: list[str] = []
    for path in map(Path, paths):
        named = (path / "run.toml").exists()
        folders = [path] if named else below(path, DEPTH)
        if not folders:
            problems.append(f"{path} {'holds no run, nor do its folders' if path.is_dir() else 'is not a folder'}")
        for folder in folders:
            try:
                views.setdefault(folder.resolve(), load(folder))
            except Refused as refused:
                if named or tell is None:
                    problems += refused.problems
                else:
                    tell(f"left out: {refused}")
    if problems or not views:
        raise Refused(*problems or ["no run to report; name the folders of runs, or a folder that holds them"])
    return list(views.values())


def below(folder: Path, depth: int) -> list[Path]:
    if depth == 0 or not folder.is_dir():
        return []
    inner = sorted((p for p in folder.iterdir() if p.is_dir()), key=lambda p: natural(p.name))
    return [run for p in inner for run in ([p] if (p / "run.toml").exists() else below(p, depth - 1))]


def natural(text: str) -> list[tuple[int, str]]:
    """An order in which 10 comes after 9."""
    return [(int(piece), "") if piece.isdigit() else (0, piece) for piece in re.split(r"(\d+)", text)]


def grouped(runs: Sequence[RunView]) -> list[Group]:
    """Runs with the same [run] but for the seed; the label is the method and what else differs between the groups."""
    together: dict[str, list[RunView]] = {}
    for view in runs:
        same = {key: value for key, value in view.run.items() if key != "seed"}
        together.setdefault(json.dumps(same, sort_keys=True, default=str), []).append(view)
    members = list(together.values())
    keys = differing([views[0].run for views in members])
    return [
        Group(label(views[0].run, keys), tuple(sorted(views, key=lambda v: (v.seed, natural(str(v.folder))))))
        for views in members
    ]


def differing(tables: Sequence[dict[str, Any]]) -> list[str]:
    """The keys, method and seed aside, that do not have one value in all tables."""
    keys = dict.fromkeys(key for table in tables for key in table if key not in ("method", "seed"))
    return [key for key in keys if len({repr(table.get(key)) for table in tables}) > 1]


def label(run: dict[str, Any], keys: Sequence[str]) -> str:
    extra = [f"{key.replace('_', '-')}={run[key]}" for key in keys if key in run]
    return ", ".join([str(run["method"]), *extra])
