"""Partitioners of Flower Datasets as they are: `flower:DirichletPartitioner(num_partitions=10, ...)`."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from holdfast.data.dealing import Dealt, Samples
from holdfast.data.named import nearest, option_problems
from holdfast.errors import Refused

PREFIX = "flower:"
ROW = "holdfast_row"
OTHER = {  # what cannot be a split, and why
    "Partitioner": "it is the base class of all",
    "IdToSizeFncPartitioner": "it needs a Python function; take Linear-, Square- or ExponentialPartitioner",
    "VerticalEvenPartitioner": "it deals features to clients, not samples",
    "VerticalSizePartitioner": "it deals features to clients, not samples",
}


def partitioners() -> dict[str, Callable[..., Any]]:
    """Those of the installed flwr-datasets that deal samples, by name."""
    try:
        partitioner = importlib.import_module("flwr_datasets.partitioner")
    except ImportError as error:
        raise Refused(
            f'splits by "{PREFIX}..." need Flower Datasets ({error}): pip install "holdfast[flower]"'
        ) from error
    return {name: getattr(partitioner, name) for name in partitioner.__all__}


def problems(name: str, options: Mapping[str, Any]) -> list[str]:
    """What is wrong whatever the data is."""
    known, short = partitioners(), name.removeprefix(PREFIX)
    if short in OTHER:
        return [f"'{name}' makes no split: {OTHER[short]}"]
    if short not in known:
        return [f"unknown split '{name}': {nearest(short, [key for key in known if key not in OTHER])}"]
    own = {key: value for key, value in options.items() if key != "order"}
    order = options.get("order", "shuffled")
    wrong = [] if order in ("shuffled", "stored") else [f"order={order!r} is unknown: write 'shuffled' or 'stored'"]
    return wrong + option_problems(name, known[short], own)


def flower(name: str, options: Mapping[str, Any], samples: Samples, seed: int) -> Dealt:
    """The partitions of the training samples, in Flower's order.

    The partitioner sees a `datasets.Dataset` of `label` and the data's columns by name. Before, the rows are shuffled
    by the seed, as Flower's FederatedDataset does by default (`IidPartitioner` only cuts); `order='stored'` leaves
    them. Where the partitioner takes a seed and none is given, it gets the run's; Flower's own default is seed=42.
    """
    own = {key: value for key, value in options.items() if key != "order"}
    make = partitioners()[name.removeprefix(PREFIX)]
    if "seed" in inspect.signature(make).parameters:
        own = {"seed": seed, **own}
    if "distribution_array" in own:  # the one option that has to be an array
        own["distribution_array"] = np.array(own["distribution_array"])
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # progress bars
            warnings.simplefilter("ignore")  # of every repeated draw; when it gives up it raises
            return Dealt(_partitions(make(**own), samples, options.get("order", "shuffled"), own.get("seed", seed)))
    except Exception as error:
        raise Refused(
            f"{name} of flwr-datasets refused: {type(error).__name__}: {error}; change its options; "
            "they are told at flower.ai/docs/datasets"
        ) from error


def _partitions(partitioner: Any, samples: Samples, order: str, seed: int | None) -> list[np.ndarray]:
    datasets = importlib.import_module("datasets")
    table: dict[str, Any] = {ROW: np.arange(len(samples.labels)), "label": samples.labels}
    for key, column in samples.columns.items():
        table[key] = np.array(column.names)[column.train]
    whole = datasets.Dataset.from_dict(table)
    partitioner.dataset = whole.shuffle(seed=seed) if order == "shuffled" else whole
    count = partitioner.num_partitions
    return [np.asarray(partitioner.load_partition(i)[ROW][:], dtype=np.int64) for i in range(count)]
