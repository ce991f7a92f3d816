"""Feature shift by corruptions: every client sees a few of the corruption types."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from holdfast.data.dealing import Dealt, Indices, Samples, column, grouped, refuse, refuse_empty, too_many
from holdfast.errors import Refused


def corruptions(
    samples: Samples, rng: Generator, *, types: int | tuple[int, int] = (2, 3), clients: int = 100
) -> Dealt:
    """Each client draws `types` of the corruption types, without replacement: as many, or from the least to the most.

    Where the data holds images with several corruptions (columns 'image' and 'corruption'), the images are dealt at
    random in equal parts, and each takes one of its client's types: no image is used twice. Where every sample has its
    one corruption already (no column 'image', or no image twice), the samples of a type are dealt evenly among the
    clients that drew it, and a type that nobody drew is left out.
    """
    kinds = column(samples, "corruption")
    present = np.unique(kinds.train)
    low, high = types if isinstance(types, tuple) else (types, types)
    if high > len(present):
        raise Refused(f"types={types} is more than the {len(present)} corruptions of the data: take {len(present)}")
    images = samples.columns["image"].train if "image" in samples.columns else np.arange(len(kinds.train))
    if len(images) != len(kinds.train):
        raise Refused("the column 'image' says nothing of the training samples: give one image a sample")
    wanted = rng.integers(low, high + 1, clients)
    held = [np.sort(rng.permutation(present)[:count]) for count in wanted]
    if len(np.unique(images)) == len(images):
        return _by_type(kinds.train, held, rng)
    return _by_image(images, kinds.train, held, rng)


def _by_image(images: np.ndarray, kinds: np.ndarray, held: Indices, rng: Generator) -> Dealt:
    known, image = np.unique(images, return_inverse=True)
    image = image.reshape(-1)
    refuse(too_many(len(held), len(known)))
    table = np.full((len(known), int(kinds.max()) + 1), -1)
    table[image, kinds] = np.arange(len(kinds))
    parts = np.array_split(rng.permutation(len(known)), len(held))
    dealt = [table[own, rng.choice(mine, len(own))] for own, mine in zip(parts, held, strict=True)]
    missing = sum(int((rows < 0).sum()) for rows in dealt)
    if missing:
        raise Refused(
            f"{missing} images lack the corruption that their client drew: give every image every corruption, "
            "or one each"
        )
    return Dealt(dealt)


def _by_type(kinds: np.ndarray, held: Indices, rng: Generator) -> Dealt:
    dealt: list[Indices] = [[] for _ in held]
    for kind, rows in enumerate(grouped(kinds, int(kinds.max()) + 1)):
        holders = [client for client, mine in enumerate(held) if kind in mine]
        if holders:
            for client, part in zip(holders, np.array_split(rng.permutation(rows), len(holders)), strict=True):
                dealt[client].append(part)
    clients = [np.concatenate(pieces) for pieces in dealt]
    refuse_empty(np.array([len(rows) for rows in clients]), "corruptions()", "fewer clients or more types")
    return Dealt(clients)
