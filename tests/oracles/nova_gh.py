"""FedNova + FedGH: projection (MS 7, algorithm 1), then normalisation (MS 6); the two commute (MS 1.3)."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, order=None):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = [k for k in cohorts[t % len(cohorts)] if K[k] > 0]
        u = {}
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            u[k] = x - w
        tau_eff, d = 0.0, np.zeros_like(w0)
        for k in S:
            v = u[k]
            others = [j for j in S if j != k]
            for j in others if order is None else order(t, k, others):
                if v @ u[j] < 0:  # MS 7, algorithm 1
                    v = v - (v @ u[j]) / (u[j] @ u[j]) * u[j]
            p = n[k] / n[S].sum()
            d = d + p * v / K[k]  # MS 6: a_k = K_k
            tau_eff = tau_eff + p * K[k]
        w = w + tau_eff * d
        path.append(w)
    return np.array(path)
