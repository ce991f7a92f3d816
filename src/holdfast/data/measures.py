"""How unlike the clients of a split are, in numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def measured(counts: np.ndarray, clients: Sequence[np.ndarray], samples: int) -> dict[str, float]:
    """From the samples of every class at every client, [N, M].

    With p_ij the share of class j at client i, p_j its mean over the clients and P_j its share of all that clients
    hold: `heterogeneity` H = (1/N) sum_i (1/M) sum_j (p_ij - p_j)^2; `total_variation` the mean over clients of
    (1/2) sum_j |p_ij - P_j|; `effective_classes` the mean of exp(entropy of p_i), 1 to M; `size_cv` the sizes' standard
    deviation (of the population) by their mean. A client without samples has no shares and counts in sizes only.
    `unused` samples are with no client, `class_min` and `class_max` are the extreme totals of a class.
    """
    sizes, totals = counts.sum(axis=1), counts.sum(axis=0)
    shares = counts[sizes > 0] / sizes[sizes > 0, None]
    everyone = totals / max(totals.sum(), 1)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    distinct = len(np.unique(np.concatenate(clients)))
    some = len(shares) > 0
    return {
        "clients": len(sizes),
        "size_min": int(sizes.min()),
        "size_mean": float(sizes.mean()),
        "size_max": int(sizes.max()),
        "size_cv": float(sizes.std() / sizes.mean()) if some else 0.0,
        "distinct": distinct,
        "unused": samples - distinct,
        "classes_mean": float((counts > 0).sum(axis=1).mean()),
        "class_min": int(totals.min()),
        "class_max": int(totals.max()),
        "empty": int((sizes == 0).sum()),
        "heterogeneity": float(((shares - shares.mean(axis=0)) ** 2).mean()) if some else 0.0,
        "total_variation": float(np.abs(shares - everyone).sum(axis=1).mean() / 2) if some else 0.0,
        "effective_classes": float(np.exp(-(shares * logs).sum(axis=1)).mean()) if some else 0.0,
    }
