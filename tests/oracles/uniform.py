"""FedAvg with uniform weights 1/|S|, whatever the sizes; MS 3 (FL-Simulator row), ML 5.1."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None):
    K, _, cohorts = participation(a, steps, cohort, sizes)  # sizes only tell which clients are empty
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            delta = delta + (x - w) / len(S)  # MS 3: a_k = 1/m
        w = w + delta
        path.append(w)
    return np.array(path)
