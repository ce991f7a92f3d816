"""FedAvg: McMahan et al., AISTATS 2017, algorithm 1 (FederatedAveraging); ML 5.1, MS 3."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):  # algorithm 1, server: for each round
        S = cohorts[t % len(cohorts)]  # server: S_t
        delta = np.zeros_like(w0)
        for k in S:  # server: for each client k in S_t
            x = w  # ClientUpdate(k, w)
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)  # ClientUpdate: w <- w - eta grad l(w)
            delta = delta + n[k] / n[S].sum() * (x - w)  # server: weights n_k / m_t
        w = w + delta
        path.append(w)
    return np.array(path)
