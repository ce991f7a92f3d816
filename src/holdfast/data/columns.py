"""Columns of ids, whom or what every sample comes from; made of what a user gives, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

FORMS = "give one id a sample: an array for the training samples, or (train, test) with one for each part"


@dataclass(frozen=True, eq=False)
class Column:
    """Whom or what every sample comes from: a writer, a role, a user, a domain, a date."""

    names: tuple[str, ...]
    train: np.ndarray  # [n] int64, positions in `names`
    test: np.ndarray  # [m] int64; empty where nobody knows it of the test samples


def as_columns(given: object, samples: int, tests: int, problems: list[str]) -> dict[str, Column]:
    """Each column with one id a sample; for test samples nobody need know it."""
    if not isinstance(given, Mapping):
        problems.append(f"columns is a {type(given).__name__}: give a dict such as {{'site': ids}}; {FORMS}")
        return {}
    made: dict[str, Column] = {}
    for name, value in given.items():
        found: list[str] = []
        column = as_column(value, found) if isinstance(name, str) and name else None
        if column is None:
            found = found or ["needs a name, as text"]
        else:
            made[name] = column
            found += sizes(column, samples, tests)
        problems += [f"column {name!r} {problem}" for problem in found]
    return made


def as_column(value: Any, problems: list[str]) -> Column | None:
    """A Column with its positions checked for their kind, or one made of ids as they are; None if it cannot be."""
    if isinstance(value, Column):
        parts = [np.asarray(part) for part in (value.train, value.test)]
        bad = [f"{what} {part.dtype} of shape {part.shape}" for what, part in zip(("train", "test"), parts, strict=True)
               if part.ndim != 1 or (part.dtype.kind not in "iu" and len(part))]  # fmt: skip
        problems += [f"has positions that are no row of whole numbers: {one}" for one in bad]
        return None if bad else Column(tuple(map(str, value.names)), *(part.astype(np.int64) for part in parts))
    pair = isinstance(value, tuple) and len(value) == 2 and all(np.ndim(part) > 0 for part in value)
    train, test = (ids(part, problems) for part in (value if pair else (value, ())))
    if train is None or test is None:
        return None
    if len(train) and len(test) and (train.dtype.kind == "U") != (test.dtype.kind == "U"):
        problems.append("has text in one part and numbers in the other: give the same ids in both")
        return None
    both = np.concatenate([part for part in (train, test) if len(part)] or [train])
    names, places = np.unique(both, return_inverse=True)
    return Column(tuple(map(str, names.tolist())), *np.split(places.astype(np.int64), [len(train)]))


def ids(value: Any, problems: list[str]) -> np.ndarray | None:
    """One row of whole numbers or texts."""
    try:
        held = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    except (TypeError, ValueError):
        problems.append(f"is a {type(value).__name__} that is no row of ids: {FORMS}")
        return None
    if held.dtype == object and held.ndim == 1 and all(isinstance(one, str) for one in held):
        held = held.astype(str)
    if held.ndim != 1 or (held.dtype.kind not in "iubU" and len(held)):
        kind = f"a {type(value).__name__} of {held.dtype} and shape {held.shape}"
        problems.append(f"is {kind}, and ids are whole numbers or texts: {FORMS}")
        return None
    return held


def sizes(column: Column, samples: int, tests: int) -> list[str]:
    """One position a sample, each of them of a name."""
    problems: list[str] = []
    for part, held, many in (("train", column.train, (samples,)), ("test", column.test, (0, tests))):
        known = len(column.names)
        if len(held) not in many:
            problems.append(f"has {len(held)} {part} values for {many[-1]} samples: give one each")
        elif len(held) and not 0 <= int(held.min()) <= int(held.max()) < known:
            problems.append(f"has {part} values outside 0 to {known - 1}, its {known} names")
    return problems
