"""FedGAMMA = SCAFFOLD (option II, ICML 2020, algorithm 1) + SAM: Dai et al., TNNLS 2024; ML 5.8, 4.1."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.1, eps=1e-7):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N = len(a)
    w, path = w0, []
    c, ci = np.zeros_like(w0), np.zeros_like(a)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                e = rho * g / (np.linalg.norm(g) + eps)  # ML 5.8: from the raw local gradient
                x = x - lr[t] * (grad(a[k], b[k], x + e) + c - ci[k])
            new = ci[k] - c - (x - w) / (K[k] * lr[t])  # option II
            delta = delta + n[k] / n[S].sum() * (x - w)
            dc = dc + new - ci[k]
            ci[k] = new
        w = w + delta
        c = c + dc / N
        path.append(w)
    return np.array(path)
