"""FedAvgM: Hsu, Qi, Brown, 2019; MS 4. form 'heavy': v <- beta v + u; 'dampened': v <- beta v + (1 - beta) u."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, beta=0.9, form="dampened"):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    v = np.zeros_like(w0)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            delta = delta + n[k] / n[S].sum() * (x - w)
        v = beta * v + (delta if form == "heavy" else (1 - beta) * delta)  # MS 4, table
        w = w + v  # MS 4, eta = 1
        path.append(w)
    return np.array(path)
