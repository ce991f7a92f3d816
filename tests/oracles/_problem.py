"""What every oracle shares: the quadratic client, the norm clip, who takes part. Written from the specs alone.

Sources are cited as ML (methods-local.md), MS (methods-server.md), AD (addenda.md), each with its section.
"""

import numpy as np


def grad(a, b, w):
    """Gradient of f(w) = 1/2 sum_j a_j (w_j - b_j)^2 (ML 8.1)."""
    return a * (w - b)


def clip(v, limit):
    """clip_M(v) = v min(1, M / (||v|| + 1e-6)), the norm over the whole vector (ML 0.2)."""
    return v * min(1.0, limit / (np.linalg.norm(v) + 1e-6))


def participation(a, steps, cohort, sizes):
    """Local steps per client, client sizes, and the list of cohorts without empty clients (MS 3, 13)."""
    clients = len(a)
    K = [int(k) for k in np.broadcast_to(steps, clients)]
    n = np.ones(clients) if sizes is None else np.asarray(sizes, dtype=float)
    cohorts = [list(range(clients))] if cohort is None else cohort
    return K, n, [[int(k) for k in S if n[k] > 0] for S in cohorts]


def rates(lr, rounds):
    """The local learning rate of every round: one number for all, or a list."""
    return np.broadcast_to(np.asarray(lr, dtype=float), rounds) if np.ndim(lr) == 0 else np.asarray(lr, dtype=float)
