"""FedASAM: Kwon et al., 2021; Caldarola et al., ECCV 2022; ML 4.2. The one tensor counts as a weight: T = |w| + eta."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.5, eta=0.01):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                T = np.abs(x) + eta  # ML 4.2, at the current local model
                e = rho * T**2 * g / (np.linalg.norm(T * g) + 1e-16)  # ML 4.2
                x = x - lr[t] * grad(a[k], b[k], x + e)
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
