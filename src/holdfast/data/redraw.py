"""FedEve's drift settings: the data of a round's clients, pooled and dealt to them anew.  Shen et al. 2025, figure 3b.

    none    an iid split, drift both    neither
    period  a skewed split              clients of a round differ from the population, not from each other
    client  an iid split                clients of a round differ from each other, together they are like all
    both    a skewed split              plain federated learning

Pure functions of what the clients hold and a generator, so that every method and executor sees the same parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from holdfast.data.dealing import pools
from holdfast.data.dirichlet import cut_classes

KINDS = ("both", "period", "client")
Indices = list[np.ndarray]


@dataclass(frozen=True)
class Drift:
    """Which drift a run has; `alpha` is that of 'client'."""

    kind: str = "both"
    alpha: float = 0.1

    @property
    def text(self) -> str:
        return f"client(alpha={self.alpha!r})" if self.kind == "client" else self.kind

    @property
    def redraws(self) -> bool:
        return self.kind != "both"


BOTH = Drift()


def redrawn(drift: Drift, held: Indices, labels: np.ndarray, total: int, draw: Generator) -> Indices:
    """What each client of a round trains on; `labels` are those of the whole data set."""
    if drift.kind == "period":
        return equal_parts(held, draw)
    return class_wise(held, labels, total, drift.alpha, draw) if drift.kind == "client" else held


def equal_parts(held: Indices, draw: Generator) -> Indices:
    """Pooled, shuffled and cut into equal parts; sizes differ by one sample at most."""
    return np.array_split(draw.permutation(np.concatenate(held)), len(held))


def class_wise(held: Indices, labels: np.ndarray, total: int, alpha: float, draw: Generator) -> Indices:
    """Pooled, and dealt by rule P3: no minimum, so parts may be empty, and a class keeps its order in the pool."""
    samples = np.concatenate(held)
    stacks = [samples[places] for places in pools(labels[samples], total)]
    return cut_classes(stacks, alpha, len(held), draw)
