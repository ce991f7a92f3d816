"""Checkpoints that are whole or not there: safetensors and JSON, hashed, written aside and renamed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from holdfast.errors import Refused
from holdfast.vector import Record

VERSION = 1
KEPT = 2


class Snapshot(NamedTuple):
    round: int
    tree: dict[str, Any]
    ids: list[int]  # clients whose memory rows the tree holds


def save(folder: Path, snapshot: Snapshot) -> None:
    """Writes `folder/00000010/` in one rename and drops all but the last two."""
    finish(folder, draft(folder, snapshot))


def draft(folder: Path, snapshot: Snapshot) -> Path:
    """The checkpoint under a name of its own: on the disk, and none yet."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{snapshot.round:08d}.{os.getpid()}.tmp"
    remove(aside)
    aside.mkdir()
    blob = save_tensors({name: t.detach().contiguous().cpu() for name, t in flat(snapshot.tree).items()})
    facts = {"version": VERSION, "round": snapshot.round, "ids": snapshot.ids}
    write(aside / "state.safetensors", blob)
    write(aside / "state.json", json.dumps({**facts, "sha256": digest(facts, blob)}).encode())
    sync(aside)
    sync(folder)
    return aside


def finish(folder: Path, aside: Path) -> None:
    """Makes a checkpoint of a draft."""
    target = folder / aside.name.partition(".")[0]
    remove(target)
    os.replace(aside, target)
    sync(folder)
    for old in whole(folder)[:-KEPT]:
        remove(old)
    for left in folder.glob("*.tmp"):  # of a run that was killed while it wrote
        remove(left)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def whole(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first; what a kill left of an unfinished one has another name."""
    return sorted(p for p in folder.glob("[0-9]*") if p.name.isdigit())


def digest(facts: dict[str, Any], blob: bytes) -> str:
    told = json.dumps({key: facts[key] for key in ("version", "round", "ids")})
    return hashlib.sha256(told.encode() + blob).hexdigest()


def load(folder: Path, tell: Any = print) -> Snapshot | None:
    """The newest whole checkpoint; a damaged one is named and the one before it used. None if there is none."""
    problems: list[str] = []
    for path in reversed(whole(folder)):
        try:
            snapshot = read(path)
        except Refused as refused:
            problems += refused.problems
            continue
        for problem in problems:
            tell(f"{problem}; going on from round {snapshot.round}")
        return snapshot
    if problems:
        raise Refused(*problems, advice=f"no whole checkpoint is left in {folder}; start again with another --out")
    return None


def read(path: Path) -> Snapshot:
    try:
        facts = json.loads((path / "state.json").read_bytes())
        blob = (path / "state.safetensors").read_bytes()
        lacks = [
            key
            for key in ("version", "round", "ids", "sha256")
            if key not in (facts if isinstance(facts, dict) else {})
        ]
        if lacks:
            raise Refused(f"checkpoint {path} is damaged: its state.json lacks {', '.join(lacks)}")
        if facts["version"] != VERSION:
            raise Refused(f"checkpoint {path} has format {facts['version']}, and this version reads {VERSION}")
        if digest(facts, blob) != facts["sha256"]:
            raise Refused(f"checkpoint {path} is damaged: its hash does not match")
        tree = unflat(load_tensors(blob))
        return Snapshot(int(facts["round"]), tree, [int(i) for i in facts["ids"]])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        if isinstance(error, Refused):
            raise
        said = f"{Path(error.filename).name}: {error.strerror}" if isinstance(error, OSError) else error
        raise Refused(f"checkpoint {path} cannot be read: {said}") from error


def flat(tree: dict[str, Any], prefix: str = "") -> Record:
    """Nested dictionaries as one, with '/' between names (names of tensors have dots of their own)."""
    found: Record = {}
    for key, value in tree.items():
        if isinstance(value, Tensor):
            found[prefix + key] = value
        else:
            found |= flat(value, f"{prefix}{key}/")
    return found


def unflat(tensors: Record) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, tensor in tensors.items():
        *path, last = name.split("/")
        branch = tree
        for key in path:
            branch = branch.setdefault(key, {})
        branch[last] = tensor
    return tree


def write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, content: bytes) -> None:
    """A file that is the old one or the new one at every moment."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    write(aside, content)
    os.replace(aside, path)
    sync(path.parent)


def sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
