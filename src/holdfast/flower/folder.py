"""The server's folder is that of a run: `holdfast report` reads it. Begun, gone on with, and kept after every round."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from holdfast import checkpoint
from holdfast.errors import Refused
from holdfast.experiment import Ready, Run
from holdfast.flower.memory import NEVER
from holdfast.folder import recipe, restore, snapshot, sound, trim, write_row
from holdfast.recorded import opened
from holdfast.results import merged, not_lost, same_start
from holdfast.simulate import Row, State

TOKEN = "federation"  # the file with the name by which sites know a federation again


def begun(
    folder: Path, made: Ready, token: str, tell: Callable[[str], None]
) -> tuple[State, Tensor, str, list[Row]]:  # fmt: skip
    """A new run, or what an older server left of this one."""
    state = State.of(made.federation)
    counted = torch.full((len(made.federation.clients),), NEVER, dtype=torch.int64)
    if not (folder / "run.toml").exists():
        made.split.save(folder / "split.json")
        checkpoint.replace(folder / TOKEN, token.encode())
        checkpoint.replace(folder / "run.toml", recipe(made).encode())
        return state, counted, token, []
    stored, plan, facts = opened(folder)
    rows, token = sound(folder), (folder / TOKEN).read_text().strip()
    if not re.fullmatch(r"[0-9a-f]{16}", token):
        raise Refused(f"{folder / TOKEN} is damaged: {token!r}; start anew with another out")
    merged(made.run, stored, None, folder, plan)
    same_start(made, facts, str(folder))
    found = checkpoint.load(folder / "checkpoint", tell)
    if found:
        restore(state, found)
        counted = found.tree["counted"]["round"]
    elif rows:
        not_lost(folder, Run(**stored), rows, tell)
    rows = [row for row in rows if row["round"] <= state.round]
    trim(folder, rows)
    checkpoint.replace(folder / "run.toml", recipe(made).encode())
    tell(f"goes on after round {state.round} of {made.run.rounds}")
    return state, counted, token, rows


def kept(folder: Path, state: State, counted: Tensor, row: Row) -> None:
    """The row between the draft of a checkpoint and the checkpoint, as `results.kept_round` does it."""
    whole = snapshot(state)
    draft = checkpoint.draft(folder / "checkpoint", whole._replace(tree={**whole.tree, "counted": {"round": counted}}))
    write_row(folder, row)
    checkpoint.finish(folder / "checkpoint", draft)
