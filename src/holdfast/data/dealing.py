"""What a rule is given and what it returns, and the steps that several rules share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from holdfast.data.columns import Column
from holdfast.data.named import nearest
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

Indices = list[np.ndarray]
NOBODY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Ranges(Sequence[np.ndarray]):
    """Rows of clients that hold `each` one after another: as many clients as one likes, none of them written down."""

    clients: int
    each: int

    def __len__(self) -> int:
        return self.clients

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(self.clients))]
        if not -self.clients <= i < self.clients:
            raise IndexError(i)
        return np.arange(i % self.clients * self.each, (i % self.clients + 1) * self.each)


class Samples(NamedTuple):
    """What a rule may look at: the labels and who or what every sample comes from, never the samples themselves."""

    labels: np.ndarray
    classes: int
    columns: Mapping[str, Column] = MappingProxyType({})
    test_labels: np.ndarray = NOBODY
    source: Ranges | None = None  # where samples are made when their client comes

    @classmethod
    def of(cls, data: Dataset) -> Samples:
        source = Ranges(data.source.clients, data.source.each) if data.source else None
        return cls(data.y.cpu().numpy(), data.classes, data.columns, data.test_y.cpu().numpy(), source)


class Dealt(NamedTuple):
    """Rows of every client; where the rule knows them, also each client's own test rows."""

    clients: Sequence[np.ndarray]
    tests: Sequence[np.ndarray] = ()
    tests_from: str = "test"  # the part of the data that `tests` are rows of; 'train': held out of the training part


def pools(labels: np.ndarray, classes: int) -> Indices:
    """The rows of every class, ascending."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=classes))[:-1])


def dealt_by(counts: np.ndarray, labels: np.ndarray, rng: Generator) -> Indices:
    """Random rows for every client, counts[client, class] of each class, in random order."""
    clients, classes = counts.shape
    each = zip(pools(labels, classes), counts.sum(axis=0), strict=True)
    taken = [rng.permutation(pool)[:size] for pool, size in each]
    owners = [np.repeat(np.arange(clients), counts[:, label]) for label in range(classes)]
    order = rng.permutation(int(counts.sum()))
    rows, owner = np.concatenate(taken)[order], np.concatenate(owners)[order]
    grouped = rows[np.argsort(owner, kind="stable")].astype(np.int64)
    return np.split(grouped, np.cumsum(counts.sum(axis=1))[:-1])


def cut(shares: np.ndarray, count: int) -> np.ndarray:
    """Sizes of parts of `count` samples, cut at the floor of the cumulative shares; the last takes the rest."""
    cuts = (np.cumsum(shares) * count).astype(np.int64)
    cuts[-1] = count
    return np.diff(cuts, prepend=0)


def column(samples: Samples, by: str | None) -> Column:
    """The column of this name; without a name, the only one that the data has."""
    if by is None and len(samples.columns) == 1:
        return next(iter(samples.columns.values()))
    if by is not None and by in samples.columns:
        return samples.columns[by]
    if not samples.columns:
        raise Refused(
            f"by={by!r}: the data has no column of ids (writer, role, user, domain, ...); take another split, or give "
            "the ids by listed(path='ids.txt'), one a line"
        )
    hint = "name one by by='...'" if by is None else nearest(by, samples.columns)
    raise Refused(f"by={by!r} is no one column of the data: {hint}; it has {', '.join(samples.columns)}")


def grouped(ids: np.ndarray, many: int) -> Indices:
    """The rows of every id, ascending; some may have none."""
    return pools(np.asarray(ids, dtype=np.int64), many)


def refuse(problems: Sequence[str]) -> None:
    if problems:
        raise Refused(*problems)


def refuse_empty(sizes: np.ndarray, what: str, ways: str) -> None:
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise Refused(
            f"{what}: {len(empty)} of {len(sizes)} clients would have no sample (the first is client {empty[0]}): "
            f"take {ways}"
        )


def too_many(clients: int, samples: int) -> list[str]:
    if clients <= samples:
        return []
    return [f"clients={clients} is more than the {samples} samples: take {samples} or fewer"]
