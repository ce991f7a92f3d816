"""Who trains in a round and on which batches: drawn from counters, so that every method and executor sees the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from holdfast import noise

MASK = (1 << 64) - 1


def generator(seed: int, purpose: str, round: int = 0, client: int = 0) -> np.random.Generator:
    """A stream of its own for each purpose, round and client."""
    key = np.array([seed & MASK, noise.tag(purpose)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, round, client]))


def sample(seed: int, round: int, clients: int, cohort: int | float) -> np.ndarray:
    """Ids of the clients of a round, ascending: a fixed number, or each with that probability (never nobody)."""
    draw = generator(seed, "cohort", round)
    if isinstance(cohort, int):
        return np.sort(draw.choice(clients, cohort, replace=False))
    for _ in range(1000):
        chosen = np.flatnonzero(draw.random(clients) < cohort)
        if len(chosen):
            return chosen
    return draw.integers(clients, size=1)  # a chance so small that whoever comes first comes alone


@dataclass(frozen=True)
class Work:
    """How much a client does in a round: so many epochs over its data, or so many steps."""

    batch: int
    epochs: int = 1
    steps: int | None = None
    drop_last: bool = False

    def count(self, n: int) -> int:
        """Local steps of a client with n samples."""
        a_pass = n // self.batch if self.drop_last else -(-n // self.batch)
        if self.steps is None:
            return self.epochs * a_pass
        return self.steps if a_pass else 0

    def batches(self, samples: np.ndarray, draw: np.random.Generator) -> list[np.ndarray]:
        """Each pass is a new shuffle; its last batch may be smaller."""
        wanted = self.count(len(samples))
        found: list[np.ndarray] = []
        while len(found) < wanted:
            shuffled = draw.permutation(samples)
            for i in range(0, len(shuffled), self.batch):
                if not self.drop_last or i + self.batch <= len(shuffled):
                    found.append(shuffled[i : i + self.batch])
        return found[:wanted]


def table(batches: list[list[np.ndarray]], size: int) -> tuple[Tensor, Tensor]:
    """Ragged lists of batches as index and live [K, S, B]."""
    most = max((len(b) for b in batches), default=0)
    index = np.zeros((len(batches), most, size), dtype=np.int64)
    live = np.zeros(index.shape, dtype=bool)
    for k, client in enumerate(batches):
        for s, rows in enumerate(client):
            index[k, s, : len(rows)] = rows
            live[k, s, : len(rows)] = True
    return torch.from_numpy(index), torch.from_numpy(live)


def keys(seed: int, round: int, ids: Tensor) -> Tensor:
    """A random key for each client of a round."""
    return noise.fold(root(seed, ids.device), noise.tag("client"), round, ids)


def root(seed: int, device: torch.device | str = "cpu") -> Tensor:
    low = torch.tensor(seed & 0xFFFFFFFF, dtype=torch.int64, device=device)
    return noise.fold(low, seed >> 32)
