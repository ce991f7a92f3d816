"""Label skew by Dirichlet shares: five rules, which are five benchmarks.

`balanced` is B (P5), `recycled` A (P5r), `classwise` C (P4), `minimum` D (P1; P2 with min_size='classes'), `plain` P3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from holdfast.data.bounded import feasible, never, room, tries
from holdfast.data.client_wise import client_wise, dirichlet_shares, log_shares
from holdfast.data.dealing import Dealt, Indices, Samples, cut, dealt_by, pools, refuse, refuse_empty, too_many
from holdfast.errors import Refused

Drawn = Callable[[Generator, float, int], np.ndarray]  # (generator, alpha, clients) -> counts [clients, classes]


class Skew(NamedTuple):
    """The options of `dirichlet` besides the rule."""

    alpha: float
    clients: int
    empty: bool
    min_size: int
    sigma: float


def dirichlet(
    samples: Samples,
    rng: Generator,
    *,
    alpha: float,
    clients: int = 100,
    rule: str = "balanced",
    empty: str = "refuse",
    min_size: int | str = 10,
    sigma: float = 0.0,
) -> Dealt:
    """Label skew: the smaller alpha, the fewer classes a client sees. `rule` says how.

    `empty='allow'` lets 'classwise' and 'plain' leave clients without samples; `min_size` is the smallest client of
    'minimum', 'classes' being as many samples as the data has classes; `sigma` > 0 gives 'balanced' and 'recycled'
    log-normal sizes instead of equal ones (FedDyn's examples: .3).
    """
    least = samples.classes if isinstance(min_size, str) else min_size
    problems = too_many(clients, len(samples.labels))
    if rule != "minimum" and min_size != 10:
        problems.append(f"min_size={min_size} means nothing with rule='{rule}': leave it out or take rule='minimum'")
    if sigma and rule not in ("balanced", "recycled"):
        problems.append(f"sigma={sigma} means nothing with rule='{rule}', whose sizes vary as they are: leave it out")
    if rule == "minimum":
        problems += room(clients, least, len(samples.labels))
    refuse(problems)
    return RULES[rule](samples, rng, Skew(float(alpha), clients, empty == "allow", least, float(sigma)))


def _balanced(samples: Samples, rng: Generator, skew: Skew) -> Dealt:
    """FedDyn's: every client draws its own shares of the classes and gets floor(n/N) samples, each at most once."""
    return _client_wise(samples, rng, skew, refill=False)


def _recycled(samples: Samples, rng: Generator, skew: Skew) -> Dealt:
    """FL-Simulator's: as 'balanced', but an exhausted class starts again, so samples repeat and others stay unused."""
    return _client_wise(samples, rng, skew, refill=True)


def _client_wise(samples: Samples, rng: Generator, skew: Skew, refill: bool) -> Dealt:
    sizes = _sizes(len(samples.labels), skew, rng)

    def shares(rng: Generator) -> np.ndarray:
        return log_shares(rng, skew.alpha, skew.clients, samples.classes)

    return Dealt(client_wise(samples, rng, shares, sizes, refill))


def _sizes(count: int, skew: Skew, rng: Generator) -> np.ndarray:
    """floor(n/N) for all, or log-normal around it with FedDyn's sigma, of sum n.

    What rounding leaves, below N samples, goes one each to the first clients; FedDyn gives it all to the first.
    """
    if skew.sigma == 0:
        return np.full(skew.clients, count // skew.clients)
    logs = skew.sigma * rng.standard_normal(skew.clients)
    drawn = np.exp(logs - logs.max())
    sizes = (drawn / drawn.sum() * count).astype(np.int64)
    sizes[: count - sizes.sum()] += 1
    return sizes


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
    raise Refused(never(what, draws, skew.min_size, best, near, "rule='balanced'"))


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
