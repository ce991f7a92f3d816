"""FedNova with local momentum (a_k in closed form): Wang et al., NeurIPS 2020; MS 6, table, row 2; AD A13."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, beta=0.9):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = [k for k in cohorts[t % len(cohorts)] if K[k] > 0]
        tau_eff, d = 0.0, np.zeros_like(w0)
        for k in S:
            p = n[k] / n[S].sum()
            x, buf = w, np.zeros_like(w0)  # the buffer is fresh each round
            for _ in range(K[k]):
                buf = beta * buf + grad(a[k], b[k], x)
                x = x - lr[t] * buf
            a_k = (K[k] - beta * (1 - beta ** K[k]) / (1 - beta)) / (1 - beta)  # MS 6, table
            d = d + p * (x - w) / a_k
            tau_eff = tau_eff + p * a_k
        w = w + tau_eff * d
        path.append(w)
    return np.array(path)
