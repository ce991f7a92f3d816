"""FedNova with plain local SGD (a_k = K_k): Wang et al., NeurIPS 2020; MS 6."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = [k for k in cohorts[t % len(cohorts)] if K[k] > 0]  # MS 6: tau_k = 0 drops the client
        tau_eff, d = 0.0, np.zeros_like(w0)
        for k in S:
            p = n[k] / n[S].sum()
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            a_k = K[k]  # MS 6, table, row SGD
            d = d + p * (x - w) / a_k  # MS 6: d_k = u_k / a_k
            tau_eff = tau_eff + p * a_k  # MS 6: tau_eff = sum_k p_k a_k
        w = w + tau_eff * d
        path.append(w)
    return np.array(path)
