"""What a client remembers between rounds, at its site: the state after each of the last rounds it took part in.

The server says which of its answers was the last that counted, and the client goes on from there: an answer that came
too late, or was of a round that a killed server does again, leaves no trace. With a state folder the memory is kept
over a restart of the node; Flower's own `Context.state` (1.41) lives in the memory of the node's process.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from flwr.app import Context
from safetensors import SafetensorError
from safetensors.torch import load, save

from holdfast import checkpoint
from holdfast.errors import Refused
from holdfast.flower.wire import named, packed, rebuilt, unpacked

KEPT = 3  # the round that counted, the newest, and one for a server whose newest checkpoint is damaged
NEVER = -1


class Store:
    """By the token of a federation, so that two of them never mix."""

    def __init__(self, context: Context, token: str, client: int):
        if not re.fullmatch(r"[0-9a-f]{16}", token):
            raise Refused(f"the server sent token={token!r}; it must be 16 hexadecimal digits")
        folder = context.node_config.get("state")
        self.name = f"{token}-{client}"
        self.folder = Path(str(folder)).expanduser() / self.name if folder else None
        self.state = context.state

    def at(self, counted: int, fresh: Any) -> tuple[Any, bool]:
        """The memory after that round, and whether it was there; before the first, and where it is lost, `fresh`."""
        if counted == NEVER or not dict(named(fresh)):
            return fresh, True
        if self.folder:
            return self.from_file(self.folder / f"{counted:08d}.safetensors", fresh)
        record = self.state.array_records.get(f"{self.name}/{counted:08d}")
        return (fresh, False) if record is None else (unpacked(record, fresh, "the node's state"), True)

    def from_file(self, path: Path, fresh: Any) -> tuple[Any, bool]:
        try:
            found, wanted = load(path.read_bytes()), dict(named(fresh))
        except (OSError, SafetensorError):
            return fresh, False
        sound = found.keys() == wanted.keys() and all(found[k].shape == t.shape for k, t in wanted.items())
        return (rebuilt(fresh, found), True) if sound else (fresh, False)

    def put(self, round: int, counted: int, memory: Any) -> None:
        """Of a file or none: written aside, flushed and renamed."""
        if not dict(named(memory)):
            return
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            blob = save({name: t.detach().contiguous().cpu() for name, t in named(memory)})
            checkpoint.replace(self.folder / f"{round:08d}.safetensors", blob)
            held = {int(p.stem): p for p in self.folder.glob("*.safetensors")}
            for old in self.stale(set(held), round, counted):
                held[old].unlink(missing_ok=True)
            return
        self.state[f"{self.name}/{round:08d}"] = packed(memory)
        held = {int(k.rpartition("/")[2]) for k in self.state.array_records if k.startswith(f"{self.name}/")}
        for old in self.stale(held, round, counted):
            del self.state[f"{self.name}/{old:08d}"]

    @staticmethod
    def stale(held: set[int], round: int, counted: int) -> set[int]:
        """Rounds after this one are of a server that was set back; of those before, the last few stay."""
        earlier = sorted(r for r in held if r <= counted)[-(KEPT - 1) :]
        return held - {round, *earlier}
