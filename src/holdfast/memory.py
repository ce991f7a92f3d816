"""What clients remember between rounds: one table a name, with a row a client, made when it first takes part."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.vector import Record, leaves, mapped

Rows = dict[str, Record]


class Memory:
    """Rows of clients that have taken part; the others have what `fresh` says."""

    def __init__(self, fresh: Rows):
        self.fresh = fresh
        self.places: dict[int, int] = {}  # client id -> row
        self.table: Rows = mapped(lambda t: t.new_empty(0, *t.shape), fresh)

    def rows(self, ids: list[int]) -> Rows:
        """The memory of these clients, stacked."""
        each = [self.look(i) for i in ids]
        return mapped(lambda *rows: torch.stack(rows), *each)

    def look(self, client: int) -> Rows:
        """One client's memory, without making a row for it."""
        if client not in self.places:
            return self.fresh
        return mapped(lambda t: t[self.places[client]], self.table)

    def store(self, ids: list[int], rows: Rows) -> None:
        self.make(ids)
        places = torch.tensor([self.places[i] for i in ids])

        def put(table: Tensor, new: Tensor) -> None:
            table[places.to(table.device)] = new

        mapped(put, self.table, rows)

    def make(self, ids: list[int]) -> None:
        new = [i for i in ids if i not in self.places]
        self.places.update(zip(new, range(len(self.places), len(self.places) + len(new)), strict=True))
        held = next((len(t) for t in leaves(self.table)), 0)
        if leaves(self.table) and len(self.places) > held:
            more = max(len(self.places), 2 * held) - held  # doubling, so that growing stays cheap
            self.table = mapped(
                lambda t, fresh: torch.cat((t, fresh.expand(more, *fresh.shape))), self.table, self.fresh
            )

    def state(self) -> tuple[list[int], Rows]:
        """Ids and rows, for a checkpoint."""
        return list(self.places), mapped(lambda t: t[: len(self.places)].clone(), self.table)

    def restore(self, ids: list[int], rows: Rows) -> None:
        self.places = {i: place for place, i in enumerate(ids)}
        self.table = rows
