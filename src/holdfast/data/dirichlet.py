"""Label skew by Dirichlet shares: five rules, which are five benchmarks.

`balanced` is B (P5), `recycled` A (P5r), `classwise` C (P4), `minimum` D (P1; P2 with min_size='classes'), `plain` P3.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from holdfast.data.bounded import feasible, never, room, tries
from holdfast.data.dealing import Dealt, Indices, Samples, cut, dealt_by, pools, refuse, refuse_empty, too_many
from holdfast.errors import Refused

Drawn = Callable[[Generator, float, int], np.ndarray]  # (generator, alpha, clients) -> counts [clients, classes]


class Skew(NamedTuple):
    """The options of `dirichlet` besides the rule."""

    alpha: float
    clients: int
    empty: bool
    min_size: int


def dirichlet(
    samples: Samples,
    rng: Generator,
    *,
    alpha: float,
    clients: int = 100,
    rule: str = "balanced",
    empty: str = "refuse",
    min_size: int | str = 10,
) -> Dealt:
    """Label skew: the smaller alpha, the fewer classes a client sees. `rule` says how; see RULES below.

    `empty='allow'` lets 'classwise' and 'plain' leave clients without samples; `min_size` is the smallest client of
    'minimum', 'classes' being as many samples as the data has classes.
    """
    least = samples.classes if isinstance(min_size, str) else min_size
    problems = too_many(clients, len(samples.labels))
    if rule != "minimum" and min_size != 10:
        problems.append(f"min_size={min_size} means nothing with rule='{rule}': leave it out or take rule='minimum'")
    if rule == "minimum":
        problems += room(clients, least, len(samples.labels))
    refuse(problems)
    return RULES[rule](samples, rng, Skew(float(alpha), clients, empty == "allow", least))


def _balanced(samples: Samples, rng: Generator, skew: Skew) -> Dealt:
    """FedDyn's: every client draws its own shares of the classes and gets floor(n/N) samples, each at most once."""
    return Dealt(_client_wise(samples, rng, skew, refill=False))


def _recycled(samples: Samples, rng: Generator, skew: Skew) -> Dealt:
    """FL-Simulator's: as 'balanced', but an exhausted class starts again, so samples repeat and others stay unused."""
    return Dealt(_client_wise(samples, rng, skew, refill=True))


def _client_wise(samples: Samples, rng: Generator, skew: Skew, refill: bool) -> Indices:
    """One sample at a time to a random client that is not full, of a class drawn from the client's own shares."""
    stacks = [rng.permutation(pool).tolist() for pool in pools(samples.labels, samples.classes)]
    left = [len(stack) for stack in stacks]
    shares = _ClassShares(log_shares(rng, skew.alpha, skew.clients, samples.classes), np.array(left) > 0)
    quota = len(samples.labels) // skew.clients
    dealt: list[list[int]] = [[] for _ in range(skew.clients)]
    waiting = list(range(skew.clients))
    numbers = _uniform(rng)
    while waiting:
        place = int(next(numbers) * len(waiting))
        client = waiting[place]
        label = shares.draw(client, next(numbers))
        while left[label] == 0:  # only when refilling: the class starts again, but it is redrawn first
            left[label] = len(stacks[label])
            label = shares.draw(client, next(numbers))
        left[label] -= 1
        dealt[client].append(stacks[label][left[label]])
        if left[label] == 0 and not refill:
            shares.close(label)
        if len(dealt[client]) == quota:
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


def _classwise(samples: Samples, rng: Generator, skew: Skew) -> Dealt:
    """FedLAW's: every class is cut by shares over the clients, rounded; the last client takes the rest. No guard."""

    def drawn(rng: Generator, alpha: float, clients: int) -> np.ndarray:
        counts = np.zeros((clients, samples.classes), dtype=np.int64)
        for label, size in enumerate(class_sizes(samples)):
            wanted = np.rint(dirichlet_shares(rng, alpha, clients) * size).astype(np.int64)
            cuts = np.minimum(np.cumsum(wanted), size)
            cuts[-1] = size
            counts[:, label] = np.diff(cuts, prepend=0)
        return counts

    counts = drawn(rng, skew.alpha, skew.clients)
    if not skew.empty:
        _guard("classwise", counts.sum(axis=1), drawn, rng, skew)
    return Dealt(dealt_by(counts, samples.labels, rng))


def _plain(samples: Samples, rng: Generator, skew: Skew) -> Dealt:
    """simple-FL's (FedEve): every class is cut by shares over the clients, floored, in stored order. No guard.

    The test samples are dealt to the clients too, by shares of their own.
    """

    def drawn(rng: Generator, alpha: float, clients: int) -> np.ndarray:
        return np.stack([cut(dirichlet_shares(rng, alpha, clients), size) for size in class_sizes(samples)], axis=1)

    dealt = cut_classes(pools(samples.labels, samples.classes), skew.alpha, skew.clients, rng)
    if not skew.empty:
        _guard("plain", np.array([len(rows) for rows in dealt]), drawn, rng, skew)
    if not len(samples.test_labels):
        return Dealt(dealt)
    return Dealt(dealt, cut_classes(pools(samples.test_labels, samples.classes), skew.alpha, skew.clients, rng))


def _guard(rule: str, sizes: np.ndarray, drawn: Drawn, rng: Generator, skew: Skew) -> None:
    """Refuses empty clients, with the nearest settings where there are none."""
    if sizes.all():
        return

    def smallest(rng: Generator, alpha: float, clients: int) -> int:
        return int(drawn(rng, alpha, clients).sum(axis=1).min())

    near = feasible(smallest, rng, skew.alpha, skew.clients, 1, drawn(rng, skew.alpha, skew.clients).shape[1])
    ways = ["empty='allow'", "another seed", *[near] * bool(near), "rule='minimum' or 'balanced'"]
    refuse_empty(sizes, f"dirichlet(rule='{rule}')", ", ".join(ways))


def cut_classes(stacks: Indices, alpha: float, clients: int, rng: Generator) -> Indices:
    """Every class cut by shares of its own from Dirichlet(alpha), floored; it keeps its order, parts may be empty (P3).

    The last part takes what rounding leaves over, so that no sample is lost.
    """
    sizes = [cut(dirichlet_shares(rng, alpha, clients), len(stack)) for stack in stacks]
    owner = np.concatenate([np.repeat(np.arange(clients), each) for each in sizes])
    rows = np.concatenate(stacks)[np.argsort(owner, kind="stable")]
    return np.split(rows, np.cumsum(np.sum(sizes, axis=0))[:-1])


def _minimum(samples: Samples, rng: Generator, skew: Skew) -> Dealt:
    """MOON's and NIID-Bench's: class by class, full clients get no more; repeated until no client is small."""
    sizes, best = class_sizes(samples), 0
    draws = tries(skew.clients, samples.classes)

    def smallest(rng: Generator, alpha: float, clients: int) -> int:
        counts = try_minimum(sizes, rng, alpha, clients)
        return -1 if counts is None else int(counts.sum(axis=1).min())

    for _try in range(draws):
        counts = try_minimum(sizes, rng, skew.alpha, skew.clients)
        if counts is not None:
            best = max(best, int(counts.sum(axis=1).min()))
            if best >= skew.min_size:
                return Dealt(dealt_by(counts, samples.labels, rng))
    near = feasible(smallest, rng, skew.alpha, skew.clients, skew.min_size, samples.classes)
    what = f"dirichlet(alpha={skew.alpha:g}, clients={skew.clients}, rule='minimum')"
    raise Refused(never(what, draws, skew.min_size, best, near))


def try_minimum(sizes: list[int], rng: Generator, alpha: float, clients: int) -> np.ndarray | None:
    """One draw, [clients, classes]; None if all mass falls on clients that are full."""
    counts = np.zeros((clients, len(sizes)), dtype=np.int64)
    for label, size in enumerate(sizes):
        shares = dirichlet_shares(rng, alpha, clients) * (counts.sum(axis=1) < sum(sizes) / clients)
        if shares.sum() == 0:  # the official code divides 0 by 0 here
            return None
        counts[:, label] = cut(shares / shares.sum(), size)
    return counts


RULES: dict[str, Callable[[Samples, Generator, Skew], Dealt]] = {
    "balanced": _balanced,
    "recycled": _recycled,
    "classwise": _classwise,
    "minimum": _minimum,
    "plain": _plain,
}


def class_sizes(samples: Samples) -> list[int]:
    return np.bincount(samples.labels, minlength=samples.classes).tolist()


def _uniform(rng: Generator) -> Iterator[float]:
    """Numbers in [0, 1), drawn in blocks because one call each is slow."""
    while True:
        yield from rng.random(4096).tolist()
