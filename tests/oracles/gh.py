"""FedGH: Zhang, Sun, Chen, 2023, algorithm 1 (PCGrad on updates, then the weighted mean); MS 7.

order(t, k, others) -> the other clients of round t (from 0) in the order in which client k meets them; None: as listed.
"""

import numpy as np
from _problem import grad, participation


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, order=None):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        u = {}  # G~: the original updates
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr * grad(a[k], b[k], x)
            u[k] = x - w
        delta = np.zeros_like(w0)
        for k in S:
            v = u[k]  # the running g_k
            others = [j for j in S if j != k]
            for j in others if order is None else order(t, k, others):
                if v @ u[j] < 0:  # the running vector against the original one
                    v = v - (v @ u[j]) / (u[j] @ u[j]) * u[j]
            delta = delta + n[k] / n[S].sum() * v  # the weights enter after the projection
        w = w + delta
        path.append(w)
    return np.array(path)
