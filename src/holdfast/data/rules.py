"""Rules that need labels only: pure functions of (samples, generator) and their options.

One alphabet in all texts; those of the specs and code bases are P7 (`classes`), P6 (`class_split`), P8 (`shards`) and
NIID-Bench's iid-diff-quantity (`quantity`). P1 to P5r are rules of `dirichlet`.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from holdfast.data.bounded import feasible, never, room, tries
from holdfast.data.client_wise import client_wise, dirichlet_shares
from holdfast.data.dealing import Dealt, Samples, cut, dealt_by, pools, refuse, refuse_empty, too_many
from holdfast.errors import Refused


def iid(samples: Samples, rng: Generator, *, clients: int = 100) -> Dealt:
    """Shuffled and cut into equal parts; sizes differ by one sample at most."""
    refuse(too_many(clients, len(samples.labels)))
    return Dealt(np.array_split(rng.permutation(len(samples.labels)), clients))


def classes(samples: Samples, rng: Generator, *, k: int, clients: int = 100, recycled: bool = False) -> Dealt:
    """Client i holds class i mod C and k - 1 others at random; a class is split evenly among its holders.

    NIID-Bench's '#labels' (P7). A class without a holder, possible below C clients only, is left out.

    `recycled=True` is FL-Simulator's pathological rule: k random classes a client in equal shares, floor(n/N) samples
    drawn as by dirichlet(rule='recycled'), so that samples repeat.
    """
    labels, total = samples.labels, samples.classes
    present = np.flatnonzero(np.bincount(labels, minlength=total))
    problems = too_many(clients, len(labels))
    if k > (len(present) if recycled else total):
        problems.append(f"k={k} is more than the {total} classes of the data: give 1 to {len(present)}")
    refuse(problems)
    if recycled:
        sizes = np.full(clients, len(labels) // clients)
        return Dealt(client_wise(samples, rng, lambda rng: _equal_shares(rng, present, k, clients, total), sizes, True))
    holders: list[list[int]] = [[] for _ in range(total)]
    for client in range(clients):
        own = client % total
        others = rng.permutation(np.delete(np.arange(total), own))[: k - 1]
        for label in (own, *others):
            holders[label].append(client)
    counts = np.zeros((clients, total), dtype=np.int64)
    for label, pool in enumerate(pools(labels, total)):
        if holders[label]:
            counts[holders[label], label] = [len(part) for part in np.array_split(pool, len(holders[label]))]
    refuse_empty(counts.sum(axis=1), f"classes(k={k})", "fewer clients, a larger k or dirichlet")
    return Dealt(dealt_by(counts, labels, rng))


def _equal_shares(rng: Generator, present: np.ndarray, k: int, clients: int, total: int) -> np.ndarray:
    logs = np.full((clients, total), -np.inf)
    for own in logs:
        own[rng.permutation(present)[:k]] = 0
    return logs


def class_split(samples: Samples, rng: Generator, *, clients: int = 20) -> Dealt:
    """The classes are shuffled and dealt, each with all its samples to one client: disjoint label sets.

    FedGH's figure 5 (P6). Where the clients do not divide the classes, some hold one class more. A client's own test
    rows are those of its classes.
    """
    present = np.flatnonzero(np.bincount(samples.labels, minlength=samples.classes))
    if clients > len(present):
        raise Refused(
            f"clients={clients} is more than the {len(present)} classes of the data: take {len(present)} or fewer, or "
            "classes(k=...), where clients share classes"
        )
    owner = np.full(samples.classes, clients)  # classes without a sample belong to nobody
    for client, own in enumerate(np.array_split(rng.permutation(present), clients)):
        owner[own] = client
    dealt = [rng.permutation(rows) for rows in pools(owner[samples.labels], clients)]
    return Dealt(dealt, pools(owner[samples.test_labels], clients + 1)[:clients] if len(samples.test_labels) else ())


def shards(samples: Samples, rng: Generator, *, k: int = 2, clients: int = 100) -> Dealt:
    """Sorted by label, cut into k shards a client of equal size, and k random shards dealt to each (P8).

    McMahan et al. 2017. Sizes of shards differ by one sample at most.
    """
    count = len(samples.labels)
    if k * clients > count:
        raise Refused(
            f"k={k} shards for {clients} clients are more than the {count} samples: take k={max(count // clients, 1)} "
            f"or clients={max(count // k, 1)} at most"
        )
    pieces = np.array_split(np.argsort(samples.labels, kind="stable"), k * clients)
    order = rng.permutation(k * clients).reshape(clients, k)
    return Dealt([np.concatenate([pieces[i] for i in own]) for own in order])


def quantity(samples: Samples, rng: Generator, *, alpha: float, clients: int = 100, min_size: int | str = 10) -> Dealt:
    """Quantity skew: classes alike everywhere, sizes by Dirichlet(alpha); drawn anew until none is under `min_size`.

    NIID-Bench's iid-diff-quantity. It asks for shares of 10 samples; here the smallest client really has them.
    """
    count = len(samples.labels)
    least = samples.classes if isinstance(min_size, str) else min_size
    refuse(too_many(clients, count) + room(clients, least, count))

    def sizes(rng: Generator, alpha: float, clients: int) -> np.ndarray:
        return cut(dirichlet_shares(rng, alpha, clients), count)

    best = 0
    order = rng.permutation(count)
    for _try in range(tries(clients, 1)):
        drawn = sizes(rng, alpha, clients)
        if drawn.min() >= least:
            return Dealt(np.split(order, np.cumsum(drawn)[:-1]))
        best = max(best, int(drawn.min()))
    near = feasible(lambda r, a, n: int(sizes(r, a, n).min()), rng, alpha, clients, least, 1)
    raise Refused(never(f"quantity(alpha={alpha:g}, clients={clients})", tries(clients, 1), least, best, near, "iid"))


def own(samples: Samples, rng: Generator) -> Dealt:
    """Every client holds what the data set makes for it: of sets such as `synthetic`, which have no fixed samples."""
    if samples.source is None:
        raise Refused("own is the split of data sets that make clients' samples, such as synthetic; take another split")
    return Dealt(samples.source)
