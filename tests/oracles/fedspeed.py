"""FedSpeed, code form = FedDyn + SAM: Sun et al., ICLR 2023; ML 5.9, 5.4, 4.1."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, alpha=0.1, rho=0.1, eps=1e-7):
    K, _, cohorts = participation(a, steps, cohort, sizes)  # clients are weighed uniformly
    lr = rates(lr, rounds)
    w, path = w0, []
    h = np.zeros_like(a)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        mean = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                e = rho * g / (np.linalg.norm(g) + eps)
                x = x - lr[t] * (grad(a[k], b[k], x + e) + alpha * h[k] + alpha * (x - w))  # ML 5.9
            h[k] = h[k] + (x - w)
            mean = mean + x / len(S)
        w = mean + h.mean(axis=0)  # FedDyn's server
        path.append(w)
    return np.array(path)
