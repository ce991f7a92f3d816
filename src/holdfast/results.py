"""Carrying a run out: begun or resumed, round by round, each one kept."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from holdfast import checkpoint, headline, privacy
from holdfast.data.splits import Split
from holdfast.errors import Failed, Problem, Refused
from holdfast.execute import auto
from holdfast.experiment import KINDS, Plan, Ready, Run, ready
from holdfast.folder import alone, create, keep, made_folder, restore, snapshot, sound, trim, vacant, write_row
from holdfast.options import attempt, numbers
from holdfast.recorded import opened
from holdfast.remarks import remarks
from holdfast.round import Server
from holdfast.rows import WRECK, broke, holes, marked, plain
from holdfast.simulate import Row, State, advance

GROWS = {"rounds", "data_dir", "ray_address", "workers", "workers_per_gpu"}  # what a resumed run may change
ALIKE = {"batched", "ray"}  # engines that give the same bits with the same lanes
PLANNED = {"engine", "lanes", "threads"}
FINETUNED = ("finetuned_accuracy", "finetuned_sd", "finetuned_worst_decile")


@dataclass(frozen=True, eq=False)
class Result:
    """A run that has ended: one row a round, and where it is kept."""

    run: Run
    plan: Plan
    metrics: list[Row]
    folder: Path | None
    server: Server
    done: bool = True  # False if it was stopped before its last round
    stopped: bool = False  # whether somebody asked to stop
    split: dict[str, float] = field(default_factory=dict[str, float])  # its measures
    privacy: str = ""  # what its rounds guarantee, where a part of the method hides clients

    @property
    def summary(self) -> dict[str, Any]:
        """Best round, last round, mean of the last ten evaluated: which one is meant is in the name.

        Of what the run is judged by, see `headline`; of what else was measured, the last evaluated round.
        """
        name = headline.metric(self.metrics)
        values = headline.curve(self.metrics, name)
        if not values:
            return {"rounds": len(self.metrics)}
        tail, last = values[-10:], self.metrics[-1]
        broken = broke(self.metrics)
        return {
            "rounds": len(self.metrics), f"best_{name}": max(values), f"last_{name}": values[-1],
            f"last_ten_{name}": sum(tail) / len(tail),
            **{f"last_{key}": value for key, value in headline.last(self.metrics).items()},
            **{key: value for key, value in last.items() if key in FINETUNED},
            **({"diverged": broken} if broken else {}),
        }  # fmt: skip

    @property
    def remark(self) -> str:
        """What must be said of the result before it is believed; empty if nothing must."""
        broken = broke(self.metrics)
        return f"diverged in round {broken}: {WRECK}; its figures mean nothing, take a lower lr" if broken else ""


def go(
    run: Run, out: str | Path | None = None, resume: bool = False, given: set[str] | None = None,
    tell: Callable[[str], None] = lambda text: None, each: Callable[[Row, int], None] = lambda row, rounds: None,
    like: tuple[Plan, dict[str, Any]] | None = None,
) -> Result:  # fmt: skip
    """Carries a run out. With `resume`, options that are not in `given` are those of the folder.

    `each` gets every round's row and the number of rounds in all. `like` is the plan of a run to repeat and what that
    began with.
    """
    folder = Path(out) if out is not None else None
    with contextlib.ExitStack() as held:
        made, state, rows = begun(run, folder, resume, given, tell, held, like)
        tell(f"{made.federation.method}: {made.plan.why}")
        for text in remarks(made):
            tell(text)
        held.enter_context(threads(made.plan.threads))
        stopped = held.enter_context(patience(tell))
        while state.round < made.run.rounds and not stopped.is_set():
            row, kept = kept_round(made, state, folder, stopped)
            rows.append(row)
            try:
                each(row, made.run.rounds)
            except BaseException:  # such as a broken pipe: whoever listened has gone, and the round stays
                if not kept:
                    keep(folder, state)
                raise
            if stopped.is_set() and not kept:
                keep(folder, state)
        done = state.round >= made.run.rounds
        fed, measures = made.federation, made.described.measures
        private = privacy.told(fed.method, fed.cohort, len(fed.clients), state.round)
        return Result(made.run, made.plan, rows, folder, state.server, done, stopped.is_set(), measures, private)


def kept_round(made: Ready, state: State, folder: Path | None, stopped: threading.Event) -> tuple[Row, bool]:
    """One round, its row written down, and a checkpoint where one is due; whether there is one.

    The row is written between the draft of a checkpoint and the checkpoint, so a row of such a round without either
    tells that something was removed.
    """
    last = state.round + 1 == made.run.rounds
    try:
        row = marked(plain(advance(made.federation, state, last=last)), made.federation.data.classes)
    except Failed:
        keep(folder, state)
        raise
    due = last or state.round % made.run.checkpoint_every == 0 or stopped.is_set()
    if folder is not None:
        draft = checkpoint.draft(folder / "checkpoint", snapshot(state)) if due else None
        write_row(folder, row)
        if draft:
            checkpoint.finish(folder / "checkpoint", draft)
    return row, due


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """The plan's number of torch threads, and the caller's afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def begun(
    run: Run, folder: Path | None, resume: bool, given: set[str] | None, tell: Callable[[str], None],
    held: contextlib.ExitStack, like: tuple[Plan, dict[str, Any]] | None = None,
) -> tuple[Ready, State, list[Row]]:  # fmt: skip
    """A new folder, or the state and rows of an old one."""
    if resume:
        if folder is None:
            raise Refused("resume needs the folder of the run; give --out")
        opened(folder)
        held.enter_context(alone(folder))
        return resumed(run, folder, given, tell)
    if folder is not None:
        vacant(folder)
    made = ready(run, like[0] if like else None)
    if like:
        same_start(made, like[1], "the run to repeat")
        for text in like[0].lost():
            tell(text)
    auto.start(made.federation.execute, made.federation.feed)
    if folder is not None:
        made_folder(folder)
        held.enter_context(alone(folder))
        create(folder, made)
    return made, State.of(made.federation), []


def resumed(
    run: Run, folder: Path, given: set[str] | None, tell: Callable[[str], None]
) -> tuple[Ready, State, list[Row]]:
    """Everything is read and checked before anything is written."""
    stored, plan, facts = opened(folder)
    rows = sound(folder)
    run = merged(run, stored, given, folder, plan)
    if run.engine in ALIKE and run.engine != plan.engine:
        plan = dataclasses.replace(plan, engine=run.engine, why=f"{run.engine}: asked for, after {plan.engine}")
    made = remade(run, folder, plan, facts)
    auto.start(made.federation.execute, made.federation.feed)
    for text in plan.lost():
        tell(text)
    state = State.of(made.federation)
    found = checkpoint.load(folder / "checkpoint", tell)
    if found:
        restore(state, found)
    elif rows:
        not_lost(folder, Run(**stored), rows, tell)
    rows = [row for row in rows if row["round"] <= state.round]
    create(folder, made)
    trim(folder, rows)
    if lacks := holes(rows, state.round):
        tell(f"{folder / 'metrics.jsonl'} {lacks}; they stay missing")
    tell(f"resumed after round {state.round} of {run.rounds}")
    return made, state, rows


def not_lost(folder: Path, run: Run, rows: list[Row], tell: Callable[[str], None]) -> None:
    """Without a checkpoint a run begins anew, unless its rows say that there was one; see `kept_round`."""
    done, path = rows[-1]["round"], folder / "checkpoint"
    drafted = path.is_dir() and any(path.iterdir())
    if done > run.checkpoint_every or (done >= min(run.checkpoint_every, run.rounds) and not drafted):
        raise Refused(
            f"{path} has no checkpoint, and {folder / 'metrics.jsonl'} has rows of {done} rounds: they would be "
            "trained anew and written over; bring the checkpoint back, or start anew with another --out"
        )
    tell(f"there is no checkpoint: round{'s 1 to' * (done > 1)} {done} will be trained anew")


def remade(run: Run, folder: Path, plan: Plan, facts: dict[str, Any]) -> Ready:
    """What a run's folder began with, with the split that is stored there."""
    path = folder / "split.json"
    made = ready(dataclasses.replace(run, split=Split.load(path)) if path.exists() else run, plan)
    made = dataclasses.replace(made, run=run)
    same_start(made, facts, str(folder))
    return made


def same_start(made: Ready, facts: dict[str, Any], what: str) -> None:
    changed = [key for key, value in facts.items() if made.facts.get(key) != value]
    if changed:
        was = ", ".join(f"{key} was {facts[key]} and is {made.facts.get(key)}" for key in changed)
        raise Refused(f"{what} was started from something else: {was}; bring that back, or start anew elsewhere")


def merged(run: Run, stored: dict[str, Any], given: set[str] | None, folder: Path, plan: Plan | None = None) -> Run:
    """The stored options with those that may change; any other difference is named.

    What the plan fixed may be given as the plan has it.
    """
    given = {f.name for f in fields(Run)} if given is None else given
    old, problems = Run(**stored), numbers(run)

    def compare(key: str) -> None:
        if key == "engine" and plan and {plan.engine, run.engine} <= ALIKE:
            return
        if run.text(key) != old.text(key) and (key not in PLANNED or getattr(run, key) != getattr(plan, key, None)):
            raise Refused(f"{key.replace('_', '-')} is {old.text(key)!r} in {folder} and {run.text(key)!r} now")

    for key in sorted(given - GROWS - {"cohort", "drift"} if problems else given - GROWS):
        attempt(problems, lambda key=key: compare(key), key)
    if "rounds" in given and isinstance(run.rounds, int) and run.rounds < old.rounds:
        said = f"rounds is {old.rounds} in {folder} and {run.rounds} now; it can only grow"
        problems.append(Problem(said, "rounds"))
    if problems:
        raise Refused(*problems, advice="resume with the same options, or start anew with another --out")
    grown = {key: getattr(run, key) for key in GROWS & given}
    if "engine" in given and run.engine in ALIKE:
        grown["engine"] = run.engine
    # Objects given in Python have no text to be read back from; the facts tell whether they are the same ones.
    objects = {k: getattr(run, k) for k in given & {"method", *KINDS} if not isinstance(getattr(run, k), str)}
    return Run(**{**stored, **objects, **grown})


def ended(folder: Path, tell: Callable[[str], None]) -> tuple[Ready, State]:
    """A run that has done its last round, as it is kept; nothing is written."""
    if not (folder / "run.toml").is_file():
        raise Refused(f"{folder} is not the folder of a run: it has no run.toml; give the folder that --out named")
    stored, plan, facts = opened(folder)
    snapshot = checkpoint.load(folder / "checkpoint", tell)
    done, all_rounds = snapshot.round if snapshot else 0, stored.get("rounds", Run.rounds)
    if snapshot is None or done < all_rounds:
        on = f"finish it by holdfast run --out {folder} --resume"
        raise Refused(f"{folder} has kept {done} of {all_rounds} rounds; {on}")
    made = remade(Run(**stored), folder, plan, facts)
    state = State.of(made.federation)
    restore(state, snapshot)
    return made, state


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
