"""FedCM: Xu, Wang, Wang, Yao, 2021, algorithm 1; ML 5.5, and decisions 9 for unequal K.

form "unscaled": FedLESAM's copy, which leaves the local gradient as it is (ML 1.14, 5.7).
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, alpha=0.1, form="paper"):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    weight = alpha if form == "paper" else 1.0
    D = np.zeros_like(w0)  # points along +gradient
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta, K_mean = np.zeros_like(w0), 0.0
        for k in S:
            p = n[k] / n[S].sum()
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * (weight * grad(a[k], b[k], x) + (1 - alpha) * D)  # alpha weighs the local gradient
            delta = delta + p * (x - w)
            K_mean = K_mean + p * K[k]
        w = w + delta
        D = -delta / (K_mean * lr[t])  # decisions 9: D = -delta / (sum_k p_k K_k eta)
        path.append(w)
    return np.array(path)
