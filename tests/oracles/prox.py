"""FedProx: Li et al., MLSys 2020, algorithm 2 with plain gradient steps as the inexact solver; ML 5.2."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, mu=0.1):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                # gradient of h_k(x; w^t) = f_k(x) + mu/2 ||x - w^t||^2 (the norm squared, ML 8.6)
                x = x - lr[t] * (grad(a[k], b[k], x) + mu * (x - w))
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
