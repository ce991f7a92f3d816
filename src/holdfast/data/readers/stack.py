"""From one array a client to the arrays of a data set with a column that says whose each sample is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from holdfast.data.columns import Column
from holdfast.data.readers.room import room


class Rows(NamedTuple):
    """One client's samples."""

    name: str
    x: np.ndarray
    y: np.ndarray


class Stacked(NamedTuple):
    """All samples behind each other."""

    x: np.ndarray
    y: np.ndarray
    who: np.ndarray  # [n] positions in the names


def emptied(many: list[Rows]) -> Iterator[Rows]:
    """In order; the list lets go of each, so that a large set is not held twice while it is copied."""
    many.reverse()
    while many:
        yield many.pop()


def stacked(many: list[Rows], position: dict[str, int]) -> Stacked:
    of_all = sum(len(rows.y) for rows in many)
    like = many[0].x if many else np.zeros((0, 1), np.uint8)
    x = room((of_all, *like.shape[1:]), like.dtype.type)
    y, who = np.zeros(of_all, np.int64), np.zeros(of_all, np.int64)
    at = 0
    for rows in emptied(many):
        end = at + len(rows.y)
        x[at:end], y[at:end], who[at:end] = rows.x, rows.y, position[rows.name]
        at = end
    return Stacked(x, y, who)


def both(train: list[Rows], test: list[Rows]) -> tuple[Stacked, Stacked, Column]:
    """Both parts and the column; names in the order in which they come, those of the training part first."""
    position = {name: i for i, name in enumerate(dict.fromkeys(rows.name for rows in (*train, *test)))}
    first, second = stacked(train, position), stacked(test, position)
    return first, second, Column(tuple(position), first.who, second.who)
