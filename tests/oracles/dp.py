"""DP-FedAvg without its noise: McMahan et al., ICLR 2018, algorithm 1: clipped updates, and one divisor.

The divisor is the number of clients drawn, with those that hold no samples. Everybody counts the same.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, clip=1.0):
    K, _, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    drawn = [list(range(len(a)))] if cohort is None else cohort
    w, path = w0, []
    for t in range(rounds):
        total = np.zeros_like(w0)
        for k in cohorts[t % len(cohorts)]:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            total = total + (x - w) * min(1.0, clip / np.linalg.norm(x - w))
        w = w + total / len(drawn[t % len(drawn)])
        path.append(w)
    return np.array(path)
