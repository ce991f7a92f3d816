"""Rules that deal samples to clients: pure functions of (labels, number of classes, generator) and their options.

Letters of the specs: `balanced` is B (P5), `recycled` A (P5r), `classwise` C (P4), `minimum` D (P1), `classes` P7.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.random import Generator

from holdfast.data.named import nearest
from holdfast.errors import Refused

Indices = list[np.ndarray]
TRIES = 1000


def iid(labels: np.ndarray, total: int, rng: Generator, *, clients: int = 100) -> Indices:
    """Shuffled and cut into equal parts; sizes differ by one sample at most."""
    _refuse(_client_problems(clients, len(labels)))
    return np.array_split(rng.permutation(len(labels)), clients)


def classes(labels: np.ndarray, total: int, rng: Generator, *, k: int, clients: int = 100) -> Indices:
    """Client i holds class i mod C and k - 1 others at random; a class is split evenly among its holders.

    NIID-Bench's '#labels'. A class without a holder, possible below C clients only, is left out.
    """
    problems = _client_problems(clients, len(labels)) + _count_problems("k", k)
    if not problems and k > total:
        problems.append(f"k={k} is more than the {total} classes of the data: give 1 to {total}")
    _refuse(problems)
    holders: list[list[int]] = [[] for _ in range(total)]
    for client in range(clients):
        own = client % total
        others = rng.permutation(np.delete(np.arange(total), own))[: k - 1]
        for label in (own, *others):
            holders[label].append(client)
    counts = np.zeros((clients, total), dtype=np.int64)
    for label, pool in enumerate(_pools(labels, total)):
        if holders[label]:
            counts[holders[label], label] = [len(part) for part in np.array_split(pool, len(holders[label]))]
    _refuse_empty(counts, f"classes(k={k})", "fewer clients, a larger k or dirichlet")
    return _deal(labels, counts, rng)


def dirichlet(
    labels: np.ndarray,
    total: int,
    rng: Generator,
    *,
    alpha: float,
    clients: int = 100,
    rule: str = "balanced",
    empty: str = "refuse",
    min_size: int = 10,
) -> Indices:
    """Label skew: the smaller alpha, the fewer classes a client sees. `rule` says how; see DIRICHLET below.

    `empty='allow'` lets 'classwise' leave clients without samples, `min_size` is the smallest client of 'minimum'.
    """
    sizes = _client_problems(clients, len(labels)) + _count_problems("min_size", min_size)
    problems = sizes + _dirichlet_problems(alpha, rule, empty)
    if rule in tuple(DIRICHLET) and rule != "minimum" and min_size != 10:
        problems.append(f"min_size={min_size} means nothing with rule='{rule}': leave it out or take rule='minimum'")
    if rule == "minimum" and not sizes and min_size * clients > len(labels):
        problems.append(
            f"{clients} clients of at least {min_size} samples need {min_size * clients}, the data has {len(labels)}: "
            f"take min_size={len(labels) // clients} or clients={max(len(labels) // min_size, 1)} at most"
        )
    _refuse(problems)
    return DIRICHLET[rule](labels, total, rng, float(alpha), clients, empty == "allow", min_size)


def _dirichlet_problems(alpha: object, rule: object, empty: object) -> list[str]:
    problems = []
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)) or not 0 < alpha < math.inf:
        problems.append(f"alpha={alpha!r} is not a finite number above 0: 0.1 is skewed, 100 nearly even")
    if rule not in tuple(DIRICHLET):
        problems.append(f"dirichlet has no rule {rule!r}: {nearest(str(rule), DIRICHLET)}")
    if empty not in ("refuse", "allow"):
        problems.append(f"empty={empty!r} is unknown: write empty='refuse' or empty='allow'")
    return problems


def value_problems(rule: Callable[..., Indices], options: Mapping[str, Any]) -> list[str]:
    """What is wrong with the values of a rule's options, however many samples there are."""
    given = {p.name: options.get(p.name, p.default) for p in signature(rule).parameters.values()}
    found = _client_problems(given["clients"], sys.maxsize)
    found += [text for key in ("k", "min_size") if key in given for text in _count_problems(key, given[key])]
    return found + (_dirichlet_problems(*(given[key] for key in ("alpha", "rule", "empty"))) if "rule" in given else [])


def _balanced(labels: np.ndarray, total: int, rng: Generator, alpha: float, clients: int, *_: object) -> Indices:
    """FedDyn's: every client draws its own shares of the classes and gets floor(n/N) samples, each at most once."""
    return _client_wise(labels, total, rng, alpha, clients, refill=False)


def _recycled(labels: np.ndarray, total: int, rng: Generator, alpha: float, clients: int, *_: object) -> Indices:
    """FL-Simulator's: as 'balanced', but an exhausted class starts again, so samples repeat and others stay unused."""
    return _client_wise(labels, total, rng, alpha, clients, refill=True)


def _client_wise(labels: np.ndarray, total: int, rng: Generator, alpha: float, clients: int, refill: bool) -> Indices:
    """One sample at a time to a random client that is not full, of a class drawn from the client's own shares."""
    pools = [rng.permutation(pool).tolist() for pool in _pools(labels, total)]
    left = [len(pool) for pool in pools]
    shares = _ClassShares(_log_shares(rng, alpha, clients, total), np.array(left) > 0)
    quota = len(labels) // clients
    dealt: list[list[int]] = [[] for _ in range(clients)]
    waiting = list(range(clients))
    numbers = _uniform(rng)
    while waiting:
        place = int(next(numbers) * len(waiting))
        client = waiting[place]
        label = shares.draw(client, next(numbers))
        while left[label] == 0:  # only when refilling: the class starts again, but it is redrawn first
            left[label] = len(pools[label])
            label = shares.draw(client, next(numbers))
        left[label] -= 1
        dealt[client].append(pools[label][left[label]])
        if left[label] == 0 and not refill:
            shares.close(label)
        if len(dealt[client]) == quota:
            waiting[place] = waiting[-1]
            waiting.pop()
    return [np.array(indices, dtype=np.int64) for indices in dealt]


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


def _log_shares(rng: Generator, alpha: float, rows: int, columns: int) -> np.ndarray:
    """Logarithms, up to a constant, of `rows` draws of Dirichlet(alpha), by Gamma(a) = Gamma(a + 1) U^(1/a).

    Not Generator.dirichlet, which below alpha .1 breaks a stick: small shares round to exactly 0 (13 % of ten at
    alpha .01), and a client whose classes are full is then left without any preference.
    """
    alpha = max(alpha, 1e-300)  # below, the division would overflow; the shares are one-hot long before
    return np.log(rng.standard_gamma(alpha + 1, (rows, columns))) - rng.standard_exponential((rows, columns)) / alpha


def dirichlet_shares(rng: Generator, alpha: float, count: int) -> np.ndarray:
    """One draw of Dirichlet(alpha)."""
    logs = _log_shares(rng, alpha, 1, count)[0]
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()


def _classwise(
    labels: np.ndarray, total: int, rng: Generator, alpha: float, clients: int, may_be_empty: bool, *_: object
) -> Indices:
    """FedLAW's: every class is cut by shares over the clients, rounded; the last client takes the rest. No guard."""
    counts = np.zeros((clients, total), dtype=np.int64)
    for label, pool in enumerate(_pools(labels, total)):
        wanted = np.rint(dirichlet_shares(rng, alpha, clients) * len(pool)).astype(np.int64)
        cuts = np.minimum(np.cumsum(wanted), len(pool))
        cuts[-1] = len(pool)
        counts[:, label] = np.diff(cuts, prepend=0)
    if not may_be_empty:
        ways = "empty='allow', another seed, a larger alpha, fewer clients, or rule='minimum' or 'balanced'"
        _refuse_empty(counts, "dirichlet(rule='classwise')", ways)
    return _deal(labels, counts, rng)


def _minimum(
    labels: np.ndarray, total: int, rng: Generator, alpha: float, clients: int, _: bool, min_size: int
) -> Indices:
    """MOON's and NIID-Bench's: class by class, full clients get no more; repeated until no client is small."""
    sizes = [len(pool) for pool in _pools(labels, total)]
    smallest = 0
    for _try in range(TRIES):
        counts = _try_minimum(sizes, rng, alpha, clients)
        if counts is not None:
            smallest = max(smallest, int(counts.sum(axis=1).min()))
            if smallest >= min_size:
                return _deal(labels, counts, rng)
    raise Refused(
        f"dirichlet(alpha={alpha:g}, clients={clients}, rule='minimum'): in {TRIES} draws the smallest client never "
        f"had {min_size} samples (at best {smallest}): take a smaller min_size, a larger alpha, fewer clients "
        "or rule='balanced'"
    )


def _try_minimum(sizes: list[int], rng: Generator, alpha: float, clients: int) -> np.ndarray | None:
    counts = np.zeros((clients, len(sizes)), dtype=np.int64)
    for label, size in enumerate(sizes):
        shares = dirichlet_shares(rng, alpha, clients) * (counts.sum(axis=1) < sum(sizes) / clients)
        if shares.sum() == 0:  # all mass on clients that are full: the official code divides 0 by 0 here
            return None
        cuts = (np.cumsum(shares / shares.sum()) * size).astype(np.int64)
        cuts[-1] = size
        counts[:, label] = np.diff(cuts, prepend=0)
    return counts


DIRICHLET: dict[str, Callable[[np.ndarray, int, Generator, float, int, bool, int], Indices]] = {
    "balanced": _balanced,
    "recycled": _recycled,
    "classwise": _classwise,
    "minimum": _minimum,
}


def _pools(labels: np.ndarray, total: int) -> list[np.ndarray]:
    """The samples of every class."""
    return [np.flatnonzero(labels == label) for label in range(total)]


def _uniform(rng: Generator) -> Iterator[float]:
    """Numbers in [0, 1), drawn in blocks because one call each is slow."""
    while True:
        yield from rng.random(4096).tolist()


def _deal(labels: np.ndarray, counts: np.ndarray, rng: Generator) -> Indices:
    """Random samples for every client, counts[client, class] of each class, in random order."""
    clients, total = counts.shape
    pools = [rng.permutation(pool)[:size] for pool, size in zip(_pools(labels, total), counts.sum(axis=0), strict=True)]
    owners = [np.repeat(np.arange(clients), counts[:, label]) for label in range(total)]
    order = rng.permutation(int(counts.sum()))
    samples, owner = np.concatenate(pools)[order], np.concatenate(owners)[order]
    grouped = samples[np.argsort(owner, kind="stable")].astype(np.int64)
    return np.split(grouped, np.cumsum(counts.sum(axis=1))[:-1])


def _refuse(problems: list[str]) -> None:
    if problems:
        raise Refused(*problems)


def _refuse_empty(counts: np.ndarray, what: str, ways: str) -> None:
    empty = np.flatnonzero(counts.sum(axis=1) == 0)
    if len(empty):
        raise Refused(
            f"{what}: {len(empty)} of {len(counts)} clients would have no sample (the first is client {empty[0]}): "
            f"take {ways}"
        )


def _count_problems(name: str, value: object) -> list[str]:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return []
    return [f"{name}={value!r} is not a whole number above 0"]


def _client_problems(clients: object, samples: int) -> list[str]:
    problems = _count_problems("clients", clients)
    if isinstance(clients, (int, np.integer)) and clients > samples:
        problems.append(f"clients={clients} is more than the {samples} samples: take {samples} or fewer")
    return problems
