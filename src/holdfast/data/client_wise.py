"""Client by client: every client draws its samples one at a time from class shares of its own (P5 and P5r)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator

from holdfast.data.dealing import Indices, Samples, pools

LogShares = Callable[[Generator], np.ndarray]  # logarithms of every client's class shares, up to a constant


def client_wise(samples: Samples, rng: Generator, shares: LogShares, sizes: np.ndarray, refill: bool) -> Indices:
    """One sample at a time to a random client that is not full, of a class drawn from the client's own shares.

    An exhausted class starts again (`refill`) or is left out of all shares from then on.
    """
    stacks = [rng.permutation(pool).tolist() for pool in pools(samples.labels, samples.classes)]
    left = [len(stack) for stack in stacks]
    drawn = _ClassShares(shares(rng), np.array(left) > 0)
    quota = sizes.tolist()
    dealt: list[list[int]] = [[] for _ in quota]
    waiting = [client for client, size in enumerate(quota) if size]
    numbers = _uniform(rng)
    while waiting:
        place = int(next(numbers) * len(waiting))
        client = waiting[place]
        label = drawn.draw(client, next(numbers))
        while left[label] == 0:  # only when refilling: the class starts again, but it is redrawn first
            left[label] = len(stacks[label])
            label = drawn.draw(client, next(numbers))
        left[label] -= 1
        dealt[client].append(stacks[label][left[label]])
        if left[label] == 0 and not refill:
            drawn.close(label)
        if len(dealt[client]) == quota[client]:
            waiting[place] = waiting[-1]
            waiting.pop()
    return [np.array(rows, dtype=np.int64) for rows in dealt]


class _ClassShares:
    """Draws a class for a client from the client's shares, renormalised over the classes that are still open.

    Renormalising equals redrawing until an open class comes up, but ends also when the open ones have hardly any
    mass; from logarithms it is exact however little that is.
    """

    def __init__(self, logs: np.ndarray, is_open: np.ndarray):
        self.logs, self.is_open = logs, is_open
        self.ladders: list[list[float]] = [[] for _ in logs]  # cumulative shares, filled when needed

    def close(self, label: int) -> None:
        self.is_open[label] = False
        self.ladders = [[] for _ in self.logs]

    def draw(self, client: int, uniform: float) -> int:
        ladder = self.ladders[client] or self._ladder(client)
        # Scaled by the last rung and kept below it: rounding can then never point past the end or at a closed class.
        return bisect_right(ladder, min(uniform * ladder[-1], math.nextafter(ladder[-1], 0)))

    def _ladder(self, client: int) -> list[float]:
        logs = np.where(self.is_open, self.logs[client], -np.inf)
        self.ladders[client] = np.cumsum(np.exp(logs - logs.max())).tolist()
        return self.ladders[client]


def log_shares(rng: Generator, alpha: float, rows: int, columns: int) -> np.ndarray:
    """Logarithms, up to a constant, of `rows` draws of Dirichlet(alpha), by Gamma(a) = Gamma(a + 1) U^(1/a).

    Not Generator.dirichlet, which below alpha .1 breaks a stick: small shares round to exactly 0 (13 % of ten at
    alpha .01), and a client whose classes are full is then left without any preference.
    """
    alpha = max(alpha, 1e-300)  # below, the division would overflow; the shares are one-hot long before
    return np.log(rng.standard_gamma(alpha + 1, (rows, columns))) - rng.standard_exponential((rows, columns)) / alpha


def dirichlet_shares(rng: Generator, alpha: float, count: int) -> np.ndarray:
    """One draw of Dirichlet(alpha)."""
    logs = log_shares(rng, alpha, 1, count)[0]
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()


def _uniform(rng: Generator) -> Iterator[float]:
    """Numbers in [0, 1), drawn in blocks because one call each is slow."""
    while True:
        yield from rng.random(4096).tolist()
