"""FedAvg with a server learning rate; ML 5.1 and MS 3: w^{t+1} = w^t + eta_g sum_k p_k u_k."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, server_lr=1.0):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + server_lr * delta  # MS 3: w' = w + eta_g ubar
        path.append(w)
    return np.array(path)
