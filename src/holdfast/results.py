"""A run's folder: `run.toml` to repeat it, `split.json`, `metrics.jsonl`, `checkpoint/`; and the run that fills it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from holdfast import checkpoint
from holdfast.checkpoint import Snapshot
from holdfast.data.splits import Split
from holdfast.errors import Failed, Refused
from holdfast.experiment import Plan, Ready, Run, ready
from holdfast.round import Server
from holdfast.simulate import Row, State, advance
from holdfast.vector import mapped

GROWS = {"rounds"}  # what a resumed run may change


@dataclass(frozen=True, eq=False)
class Result:
    """A run that has ended: one row a round, and where it is kept."""

    run: Run
    plan: Plan
    metrics: list[Row]
    folder: Path | None
    server: Server
    done: bool = True  # False if it was stopped before its last round

    @property
    def summary(self) -> dict[str, Any]:
        """Best round, last round, mean of the last ten evaluated: which one is meant is in the name."""
        name = "personal_accuracy" if self.metrics and "personal_accuracy" in self.metrics[-1] else "accuracy"
        values = [row[name] for row in self.metrics if name in row]
        if not values:
            return {"rounds": len(self.metrics)}
        tail = values[-10:]
        return {
            "rounds": len(self.metrics), f"best_{name}": max(values), f"last_{name}": values[-1],
            f"last_ten_{name}": sum(tail) / len(tail),
        }  # fmt: skip


def go(
    run: Run, out: str | Path | None = None, resume: bool = False, given: set[str] | None = None,
    tell: Callable[[str], None] = lambda text: None, each: Callable[[Row], None] = lambda row: None,
) -> Result:  # fmt: skip
    """Carries a run out. With `resume`, options that are not in `given` are those of the folder."""
    folder = Path(out) if out is not None else None
    made, state, rows = begun(run, folder, resume, given, tell)
    tell(f"{made.federation.method}: {made.plan.why}")
    torch.set_num_threads(made.plan.threads)
    with patience(tell) as stopped:
        while state.round < made.run.rounds and not stopped.is_set():
            try:
                row = advance(made.federation, state, last=state.round + 1 == made.run.rounds)
            except Failed:
                keep(folder, state)
                raise
            rows.append(row)
            if folder:
                with (folder / "metrics.jsonl").open("a") as file:
                    file.write(json.dumps(row) + "\n")
            due = state.round % made.run.checkpoint_every == 0 or state.round == made.run.rounds
            if due or stopped.is_set():
                keep(folder, state)
            each(row)
    return Result(made.run, made.plan, rows, folder, state.server, state.round >= made.run.rounds)


def begun(
    run: Run, folder: Path | None, resume: bool, given: set[str] | None, tell: Callable[[str], None]
) -> tuple[Ready, State, list[Row]]:
    """A new folder, or the state and rows of an old one."""
    if resume:
        if folder is None:
            raise Refused("resume needs the folder of the run; give --out")
        return resumed(run, folder, given, tell)
    if folder is not None:
        vacant(folder)
    made = ready(run)
    if folder is not None:
        create(folder, made)
    return made, State.of(made.federation), []


def vacant(folder: Path) -> None:
    """A run never writes into a folder that holds anything else."""
    if (folder / "run.toml").exists():
        raise Refused(f"{folder} already holds a run; continue it with --resume, or choose another --out")
    if folder.exists() and (not folder.is_dir() or any(not p.name.endswith(".tmp") for p in folder.iterdir())):
        raise Refused(f"{folder} exists and is not an empty folder; choose another --out")


def create(folder: Path, made: Ready) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint.replace(folder / "run.toml", recipe(made).encode())
        made.split.save(folder / "split.json")
    except OSError as error:
        raise Refused(f"cannot write to {folder}: {error.strerror}; choose another --out") from error


def recipe(made: Ready) -> str:
    """`run.toml`: what to do, how it was planned, and what it started from."""
    tables = {"run": made.run.texts(), "plan": dataclasses.asdict(made.plan), "facts": made.facts}
    lines = ["# Written by holdfast. [run] is what was asked, [plan] how it is computed, [facts] what it began with."]
    for name, table in tables.items():
        lines += ["", f"[{name}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


def opened(folder: Path) -> tuple[dict[str, Any], Plan, dict[str, Any]]:
    path = folder / "run.toml"
    if not path.exists():
        raise Refused(f"{folder} is not the folder of a run: it has no run.toml; leave --resume out to start one there")
    try:
        stored = tomllib.loads(path.read_text())
        known = {f.name for f in fields(Run)}
        return {k: v for k, v in stored["run"].items() if k in known}, Plan(**stored["plan"]), stored["facts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"{path} cannot be read: {error}") from error


def resumed(
    run: Run, folder: Path, given: set[str] | None, tell: Callable[[str], None]
) -> tuple[Ready, State, list[Row]]:
    stored, plan, facts = opened(folder)
    run = merged(run, stored, given, folder)
    path = folder / "split.json"
    made = ready(dataclasses.replace(run, split=Split.load(path)) if path.exists() else run, plan)
    made = dataclasses.replace(made, run=run)
    changed = [key for key, value in facts.items() if made.facts.get(key) != value]
    if changed:
        was = ", ".join(f"{key} was {facts[key]} and is {made.facts.get(key)}" for key in changed)
        raise Refused(f"{folder} was started from something else: {was}; bring that back, or start anew elsewhere")
    if plan.torch != torch.__version__:
        tell(f"planned with torch {plan.torch}, going on with {torch.__version__}: bits may differ")
    create(folder, made)
    state = State.of(made.federation)
    snapshot = checkpoint.load(folder / "checkpoint", tell)
    if snapshot:
        restore(state, snapshot)
    rows = trim(folder, state.round)
    tell(f"resumed after round {state.round} of {run.rounds}")
    return made, state, rows


def merged(run: Run, stored: dict[str, Any], given: set[str] | None, folder: Path) -> Run:
    """The stored options with those that may change; any other difference is named."""
    asked, old = run.texts(), Run(**stored).texts()
    given = {f.name for f in fields(Run)} if given is None else given
    differs = [k for k in sorted(given - GROWS) if asked[k] != old[k]]
    problems = [f"{k.replace('_', '-')} is {old[k]!r} in {folder} and {asked[k]!r} now" for k in differs]
    if "rounds" in given and isinstance(run.rounds, int) and run.rounds < old["rounds"]:
        problems.append(f"rounds is {old['rounds']} in {folder} and {run.rounds} now; it can only grow")
    if problems:
        raise Refused(*problems, "resume with the same options, or start another run with another --out")
    rounds = run.rounds if "rounds" in given else old["rounds"]
    # Objects given in Python have no text to be read back from; the facts tell whether they are the same ones.
    objects = {k: getattr(run, k) for k in given if not isinstance(getattr(run, k), type(asked[k]))}
    return Run(**{**stored, **objects, "rounds": rounds})


def trim(folder: Path, rounds: int) -> list[Row]:
    """The rows up to the checkpoint; later ones were of rounds that will be done again."""
    path, rows = folder / "metrics.jsonl", list[Row]()
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):  # the line that a kill cut short
            rows.append(json.loads(line))
    rows = [row for row in rows if row["round"] <= rounds]
    checkpoint.replace(path, "".join(json.dumps(row) + "\n" for row in rows).encode())
    return rows


def keep(folder: Path | None, state: State) -> None:
    """A checkpoint of the last whole round."""
    if folder is None or state.round == 0:
        return
    ids, rows = state.memory.state()
    server = state.server._asdict()
    checkpoint.save(folder / "checkpoint", Snapshot(state.round, {"server": server, "memory": rows}, ids, {}))


def restore(state: State, snapshot: Snapshot) -> None:
    """Puts a snapshot's tensors where the fresh state has them; a tensor too many or too few is damage."""
    device = state.server.w.device
    tree = snapshot.tree
    fresh, stored = {"server": state.server._asdict()}, {"server": {"buffers": {}, "parts": {}, **tree["server"]}}
    stored["server"]["parts"] = {name: stored["server"]["parts"].get(name, {}) for name in fresh["server"]["parts"]}
    moved = mapped(lambda old, new: new.to(device, old.dtype), fresh, stored)
    state.server = Server(**moved["server"])
    rows = tree.get("memory", {})
    state.memory.restore(snapshot.ids, mapped(lambda old, new: new.to(device, old.dtype), state.memory.fresh, rows))


@contextlib.contextmanager
def patience(tell: Callable[[str], None]) -> Iterator[threading.Event]:
    """The first Ctrl-C (or SIGTERM) lets the round end and be kept; the second stops at once."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def ask(number: int, frame: Any) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()
        tell("stopping after this round; press Ctrl-C again to stop at once")

    old = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
