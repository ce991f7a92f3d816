"""What a run keeps and shows of its split: the samples of every class at every client, and the measures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.data.measures import measured
from holdfast.data.sets import Dataset
from holdfast.data.splits import Split

MADE = 100  # clients that are made to be measured and drawn, where all others are made when they come


class Described(NamedTuple):
    counts: np.ndarray  # [N, C]
    measures: dict[str, float]


def described(split: Split, data: Dataset) -> Described:
    """Of all clients; where they are made when they come, `measured` says of how many, and sizes are of all."""
    if data.source is None:
        counts = split.counts(data.y.cpu(), data.classes)
        return Described(counts, split.measures(counts, len(data.y)))
    many, each = len(split.clients), data.source.each
    first = min(many, MADE)
    y = data.source.made(range(first))[1].reshape(first, each)
    counts = np.stack([np.bincount(own, minlength=data.classes) for own in y])
    found = measured(counts, split.clients[:first], first * each)
    whole = {"clients": many, "distinct": many * each, "measured": first, "tested": 0, "test_rows": 0}
    return Described(counts, found | whole)
