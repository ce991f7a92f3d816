"""Samples to begin with: a site's share of a named data set, dealt as a simulation deals it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from holdfast.data import sets, splits
from holdfast.data.dealing import Samples
from holdfast.data.sets import Dataset
from holdfast.data.splits import Split
from holdfast.errors import Refused
from holdfast.text import one

Arrays = tuple[np.ndarray, np.ndarray]


@lru_cache(maxsize=2)
def dealt(data: str, split: str, seed: int) -> tuple[Dataset, Split]:
    named = one(data, "data set")
    held, call = sets.load(named.name, named.options), one(split, "split")
    return held, splits.make(call.name, call.options, Samples.of(held), seed, split)


def train_share(data: str, split: str, seed: int, site: int) -> Arrays:
    """The training samples of client `site` of this split: those that `holdfast run` gives it."""
    held, made = dealt(data, split, seed)
    if not 0 <= site < len(made.clients):
        raise Refused(f"site {site} is none of the {len(made.clients)} clients of {split}")
    rows = made.clients[site]
    return held.x[rows].numpy(), held.y[rows].numpy()


def test_share(data: str, split: str, seed: int, site: int, sites: int) -> Arrays:
    """Every `sites`-th test sample, so that all sites together are tested on each of them once."""
    held, _ = dealt(data, split, seed)
    return held.test_x[site::sites].numpy(), held.test_y[site::sites].numpy()
