"""The folder of a run: `run.toml` to repeat it, `split.json`, `metrics.jsonl` and `checkpoint/`."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast import checkpoint, rows
from holdfast.checkpoint import Snapshot
from holdfast.errors import Refused
from holdfast.experiment import Ready
from holdfast.recorded import ADVICE, writer
from holdfast.round import Server
from holdfast.simulate import Row, State
from holdfast.vector import mapped


def vacant(folder: Path) -> None:
    """A run never writes into a folder that holds anything else."""
    try:
        if (folder / "run.toml").exists():
            raise Refused(f"{folder} already holds a run; continue it with --resume, or choose another --out")
        if folder.exists() and (not folder.is_dir() or any(not leftover(p) for p in folder.iterdir())):
            raise Refused(f"{folder} exists and is not an empty folder; choose another --out")
    except OSError as error:
        raise Refused(f"cannot use {folder}: {error.strerror}; choose another --out") from error


def leftover(path: Path) -> bool:
    """What a kill can leave of a run that had hardly begun."""
    return path.name.endswith((".tmp", ".part"))


def made_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot write to {folder}: {error.strerror}; choose another --out") from error


def create(folder: Path, made: Ready) -> None:
    try:
        for path in folder.iterdir():
            if leftover(path):
                path.unlink()
        checkpoint.replace(folder / "run.toml", recipe(made).encode())
        made.split.save(folder / "split.json", *made.described)
    except OSError as error:
        raise Refused(f"cannot write to {folder}: {error.strerror}; choose another --out") from error


def recipe(made: Ready) -> str:
    """`run.toml`: what to do, how it was planned, and what it started from."""
    sheet = dataclasses.asdict(made.federation.sheet)
    tables = {"run": made.run.texts(), "plan": dataclasses.asdict(made.plan), "facts": made.facts, "sheet": sheet}
    lines = [
        "# Written by holdfast. [run] is what was asked, [plan] how it is computed, [facts] what it began with,",
        "# [sheet] what the method costs a client and round, in bytes and passes, [writer] which options there were.",
    ]
    for name, table in tables.items():
        lines += ["", f"[{name}]"]
        lines += [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items() if value is not None
        ]
    return "\n".join([*lines, "", *writer()]) + "\n"


def sound(folder: Path) -> list[Row]:
    """The rows of a run that is to go on, when all that it will read and write can be read and written."""
    kinds = {"checkpoint": Path.is_dir, "metrics.jsonl": Path.is_file, "split.json": Path.is_file}
    problems = [
        f"{folder / name} is not the {'folder' if kind is Path.is_dir else 'file'} that a run has there; {ADVICE}"
        for name, kind in kinds.items()
        if os.path.lexists(folder / name) and not kind(folder / name)
    ]
    problems += [
        f"cannot write to {path}: permission denied; make it writable, or start anew with another --out"
        for path in (folder, folder / "checkpoint")
        if path.is_dir() and not os.access(path, os.R_OK | os.W_OK | os.X_OK)
    ]
    if problems:
        raise Refused(*problems)
    return rows.read(folder / "metrics.jsonl", ADVICE)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process a folder; the lock goes with the process, however it ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Refused(f"{folder} is in use by another process; wait for it, or choose another --out") from None
    finally:
        os.close(handle)


def trim(folder: Path, kept: list[Row]) -> None:
    """Only these rows: later ones were of rounds that will be done again."""
    checkpoint.replace(folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in kept).encode())


def snapshot(state: State) -> Snapshot:
    """The last whole round."""
    ids, kept = state.memory.state()
    return Snapshot(state.round, {"server": state.server._asdict(), "memory": kept}, ids)


def keep(folder: Path | None, state: State) -> None:
    """A checkpoint of the last whole round."""
    if folder is not None and state.round > 0:
        checkpoint.save(folder / "checkpoint", snapshot(state))


def write_row(folder: Path, row: Row) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row, allow_nan=False) + "\n")


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
