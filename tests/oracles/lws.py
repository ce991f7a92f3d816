"""FedLWS: Shi et al., ICLR 2025; MS 12.3, by its letters. A quadratic's one tensor is one bucket."""

import numpy as np
from _problem import grad, participation, rates


def gamma(w, mean, updates, beta, low, high):
    """How much of a bucket is left: w before the round, mean after averaging, updates of the participants."""
    g = np.linalg.norm(mean - w)
    v = np.mean([np.linalg.norm(u - np.mean(updates, axis=0)) for u in updates])
    tau = min(max(beta * v, low), high)
    size = np.linalg.norm(w)
    return size / (size + tau * g) if size > 0 else 1.0  # or the bucket would stay at zero for ever


def buckets(names):
    """Consecutive tensors up to and including one whose name contains 'bias', as lists of positions."""
    found = [[]]
    for i, name in enumerate(names):
        found[-1].append(i)
        if "bias" in name and i + 1 < len(names):
            found.append([])
    return found


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, beta=0.03, low=0.01, high=0.2
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        updates = []
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            updates.append(x - w)
        mean = w + n[S] @ np.array(updates) / n[S].sum()
        w = gamma(w, mean, updates, beta, low, high) * mean
        path.append(w)
    return np.array(path)
