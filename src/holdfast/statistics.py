"""Means over seeds, and paired differences: methods of one seed see the same clients and batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

# 97.5 % points of Student's t for 1 to 30 degrees of freedom; beyond, the normal's is close enough.
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def spread(values: Sequence[float]) -> float | None:
    """The sample standard deviation (ddof 1); None for fewer than two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1))


def interval(differences: Sequence[float]) -> float | None:
    """Half the width of the 95 % confidence interval of the mean of paired differences."""
    sd, n = spread(differences), len(differences)
    if sd is None:
        return None
    t = T95[n - 2] if n - 2 < len(T95) else 1.96
    return t * sd / math.sqrt(n)


def shown(values: Sequence[float], scale: float = 1.0, digits: int = 2) -> str:
    if not values:
        return "-"
    sd = spread(values)
    text = f"{scale * mean(values):.{digits}f}"
    return text if sd is None else f"{text} ± {scale * sd:.{digits}f}"
