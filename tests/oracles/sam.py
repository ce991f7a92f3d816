"""FedSAM: Qu et al., ICML 2022; Caldarola et al., ECCV 2022; the ascent as in ML 4.1, the method as in ML 5.6."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.1, eps=1e-7):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)  # ML 4.1, 1
                e = rho * g / (np.linalg.norm(g) + eps)  # ML 4.1, 2 and 3: one global norm
                x = x - lr[t] * grad(a[k], b[k], x + e)  # ML 4.1, 4 to 6
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
