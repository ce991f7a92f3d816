"""The folder of a run: `run.toml` to repeat it, `split.json`, `metrics.jsonl` and `checkpoint/`."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from holdfast import checkpoint
from holdfast.checkpoint import Snapshot
from holdfast.errors import Refused
from holdfast.experiment import Plan, Ready, Run
from holdfast.options import numbers
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
        data = made.federation.data
        counts = None if data.source else made.split.counts(data.y.cpu(), data.classes)
        made.split.save(folder / "split.json", counts)
    except OSError as error:
        raise Refused(f"cannot write to {folder}: {error.strerror}; choose another --out") from error


def recipe(made: Ready) -> str:
    """`run.toml`: what to do, how it was planned, and what it started from."""
    sheet = dataclasses.asdict(made.federation.sheet)
    tables = {"run": made.run.texts(), "plan": dataclasses.asdict(made.plan), "facts": made.facts, "sheet": sheet}
    lines = [
        "# Written by holdfast. [run] is what was asked, [plan] how it is computed, [facts] what it began with,",
        "# [sheet] what the method costs a client and round, in bytes and passes.",
    ]
    for name, table in tables.items():
        lines += ["", f"[{name}]"]
        lines += [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items() if value is not None
        ]
    return "\n".join(lines) + "\n"


def opened(folder: Path) -> tuple[dict[str, Any], Plan, dict[str, Any]]:
    path = folder / "run.toml"
    if not path.exists():
        raise Refused(f"{folder} is not the folder of a run: it has no run.toml; leave --resume out to start one there")
    try:
        stored = tomllib.loads(path.read_text())
        known = {f.name for f in fields(Run)}
        run = {k: v for k, v in stored["run"].items() if k in known}
        wrong = numbers(Run(**run))
        if wrong:
            raise ValueError("; ".join(wrong))
        return run, Plan(**stored["plan"]), dict(stored["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{path} cannot be read: {error}; restore it, or start anew with another --out") from error


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


def trim(folder: Path, rounds: int) -> list[Row]:
    """The rows up to the checkpoint; later ones were of rounds that will be done again."""
    rows = [row for row in lines(folder) if row["round"] <= rounds]
    checkpoint.replace(folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    return rows


def lines(folder: Path) -> list[Row]:
    """The rows as they stand there."""
    path, rows = folder / "metrics.jsonl", list[Row]()
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):  # the line that a kill cut short
            rows.append(json.loads(line))
    return rows


def keep(folder: Path | None, state: State) -> None:
    """A checkpoint of the last whole round."""
    if folder is None or state.round == 0:
        return
    ids, rows = state.memory.state()
    server = state.server._asdict()
    checkpoint.save(folder / "checkpoint", Snapshot(state.round, {"server": server, "memory": rows}, ids))


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
