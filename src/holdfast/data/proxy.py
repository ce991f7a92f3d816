"""A class-balanced share of the test data, taken from there and held by the server, for methods that learn on it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.random import Generator

from holdfast.data.sets import Dataset
from holdfast.errors import Refused

LARGEST = 0.5  # the share has to stay below: the rest is what a run is judged by


def taken(test_y: np.ndarray, classes: int, share: float, draw: Generator) -> np.ndarray:
    """Indices of the share, ascending: as many samples of every class, share * n / classes of them, rounded."""
    each = math.floor(share * len(test_y) / classes + 0.5)
    sizes = np.bincount(test_y, minlength=classes)
    if each == 0:
        raise Refused(
            f"proxy={share:g} of {len(test_y)} test samples is not one sample of each of the {classes} classes; "
            + way_out(len(test_y), classes)
        )
    if sizes.min() <= each:
        label = int(sizes.argmin())
        raise Refused(
            f"proxy={share:g} takes {each} test samples of every class, and class {label} has {sizes[label]}, of which "
            "at least one has to stay; take a smaller proxy, or data with more test samples of that class"
        )
    pools = [draw.permutation(np.flatnonzero(test_y == label))[:each] for label in range(classes)]
    return np.sort(np.concatenate(pools))


def way_out(samples: int, classes: int) -> str:
    """The smallest share, in whole thousandths, by which every class gets a sample."""
    least = math.ceil(1000 * 0.5 * classes / samples) / 1000
    return f"take {least:g} or more" if least < LARGEST else "take data with more test samples"


def parted(data: Dataset, share: float, draw: Generator) -> tuple[Dataset, Dataset]:
    """The data without the share in its test part, and with the share as its test part."""
    held = torch.zeros(len(data.test_y), dtype=torch.bool)
    held[torch.from_numpy(taken(data.test_y.cpu().numpy(), data.classes, share, draw))] = True
    held = held.to(data.test_y.device)
    rest, proxy = (replace(data, test_x=data.test_x[rows], test_y=data.test_y[rows]) for rows in (~held, held))
    return rest, proxy
