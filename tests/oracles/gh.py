"""FedGH: Zhang, Sun, Chen, 2023, algorithm 1 (PCGrad on updates, then the weighted mean); MS 7.

order(t, k, others) -> the other clients of round t (from 0) in the order in which client k meets them; None: as listed.
test_on "original": the text's step (2), which asks of the two original updates whether they conflict.
keep "length": FedAvg's mean made as long as FedGH's; "direction": FedGH's mean made as long as FedAvg's (controls).
"""

import numpy as np
from _problem import grad, participation, rates


def along(v, length):
    """v made as long as asked; zero stays zero."""
    size = np.linalg.norm(v)
    return v * length / size if size > 0 else v


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, order=None, test_on="running", keep="both"
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        u = {}  # G~: the original updates
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            u[k] = x - w
        delta = np.zeros_like(w0)
        for k in S:
            v = u[k]  # the running g_k
            others = [j for j in S if j != k]
            for j in others if order is None else order(t, k, others):
                tested = v if test_on == "running" else u[k]
                if tested @ u[j] < 0:  # against the original one
                    v = v - (v @ u[j]) / (u[j] @ u[j]) * u[j]
            delta = delta + n[k] / n[S].sum() * v  # the weights enter after the projection
        plain = sum(n[k] / n[S].sum() * u[k] for k in S)
        if keep == "length":
            delta = along(plain, np.linalg.norm(delta))
        elif keep == "direction":
            delta = along(delta, np.linalg.norm(plain))
        w = w + delta
        path.append(w)
    return np.array(path)
