"""MoFedSAM = FedCM + SAM: Qu et al., ICML 2022; ML 5.7.

form "paper": alpha scales the SAM gradient, as in FL-Simulator; "unscaled": FedLESAM's copy, which does not (ML 1.14).
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, alpha=0.1, rho=0.1, eps=1e-7, form="paper"
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    weight = alpha if form == "paper" else 1.0
    D = np.zeros_like(w0)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta, K_mean = np.zeros_like(w0), 0.0
        for k in S:
            p = n[k] / n[S].sum()
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                e = rho * g / (np.linalg.norm(g) + eps)
                x = x - lr[t] * (weight * grad(a[k], b[k], x + e) + (1 - alpha) * D)  # ML 5.7
            delta = delta + p * (x - w)
            K_mean = K_mean + p * K[k]
        w = w + delta
        D = -delta / (K_mean * lr[t])  # ML 5.5, decisions 9
        path.append(w)
    return np.array(path)
