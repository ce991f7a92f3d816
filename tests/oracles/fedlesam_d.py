"""FedLESAM-D = FedLESAM (paper form) + FedDyn: Fan et al., ICML 2024; ML 5.11, 5.4. Uniform weights."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.1, alpha=0.1, mode="paper"):
    K, _, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    received, previous = [None] * len(a), None
    h = np.zeros_like(a)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        mean = np.zeros_like(w0)
        for k in S:
            old = received[k] if mode == "paper" else previous
            v = np.zeros_like(w0) if old is None else old - w
            size = np.linalg.norm(v)
            e = rho * v / size if size > 0 else np.zeros_like(w0)
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * (grad(a[k], b[k], x + e) + alpha * h[k] + alpha * (x - w))
            received[k] = w
            h[k] = h[k] + (x - w)
            mean = mean + x / len(S)
        previous = w
        w = mean + h.mean(axis=0)
        path.append(w)
    return np.array(path)
