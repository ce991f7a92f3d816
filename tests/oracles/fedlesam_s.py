"""FedLESAM-S = FedLESAM (paper form) + SCAFFOLD II: Fan et al., ICML 2024; ML 5.11, 5.3.

scale: of c - c_k; .1 as released (ML 1.5).
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.1, mode="paper", scale=1.0
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N = len(a)
    w, path = w0, []
    received, previous = [None] * len(a), None
    c, ci = np.zeros_like(w0), np.zeros_like(a)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:
            old = received[k] if mode == "paper" else previous
            v = np.zeros_like(w0) if old is None else old - w
            size = np.linalg.norm(v)
            e = rho * v / size if size > 0 else np.zeros_like(w0)
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * (grad(a[k], b[k], x + e) + scale * (c - ci[k]))
            received[k] = w
            new = ci[k] - c - (x - w) / (K[k] * lr[t])
            delta = delta + n[k] / n[S].sum() * (x - w)
            dc = dc + new - ci[k]
            ci[k] = new
        previous = w
        w = w + delta
        c = c + dc / N
        path.append(w)
    return np.array(path)
