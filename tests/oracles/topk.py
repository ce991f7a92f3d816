"""Top-k with error feedback: Karimireddy et al., ICML 2019, algorithm 2, on whole client updates.

A client that takes part sends the ceil(k d) largest entries of its update plus its residual, and keeps the rest as its
next residual; the server averages what it gets by sizes. Without feedback the rest is lost.
"""

from fractions import Fraction

import numpy as np
from _problem import grad, participation, rates


def largest(v, k):
    """v with zeros instead of all but its ceil(k d) largest entries."""
    many = -(-Fraction(str(k)) * len(v) // 1)
    kept = np.argsort(-np.abs(v), kind="stable")[: int(many)]
    out = np.zeros_like(v)
    out[kept] = v[kept]
    return out


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, k=0.01, feedback=True):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path, residual = w0, [], np.zeros_like(b)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for i in S:
            x = w
            for _ in range(K[i]):
                x = x - lr[t] * grad(a[i], b[i], x)
            p = x - w + residual[i]
            sent = largest(p, k)
            residual[i] = p - sent if feedback else 0
            delta = delta + n[i] / n[S].sum() * sent
        w = w + delta
        path.append(w)
    return np.array(path)
