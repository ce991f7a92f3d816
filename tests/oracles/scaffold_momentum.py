"""SCAFFOLD II (ICML 2020, algorithm 1) with local momentum and K_eff in place of K; ML 5.3 (FedSOL code), AD A13."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, beta=0.9):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N = len(a)
    w, path = w0, []
    c, ci = np.zeros_like(w0), np.zeros_like(a)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:
            x, buf = w, np.zeros_like(w0)
            for _ in range(K[k]):
                buf = beta * buf + grad(a[k], b[k], x) - ci[k] + c  # A13: the corrected gradient enters the buffer
                x = x - lr[t] * buf
            # ML 5.3: K_eff = (K - m (1 - m^K) / (1 - m)) / (1 - m)
            K_eff = (K[k] - beta * (1 - beta ** K[k]) / (1 - beta)) / (1 - beta)
            new = ci[k] - c + (w - x) / (K_eff * lr[t])
            delta = delta + n[k] / n[S].sum() * (x - w)
            dc = dc + new - ci[k]
            ci[k] = new
        w = w + delta
        c = c + dc / N
        path.append(w)
    return np.array(path)
