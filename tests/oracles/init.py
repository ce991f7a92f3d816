"""FedInit: Sun, Shen, Tao, 2023 (relaxed initialisation); ML 3.1, last item: start w^t + beta (w^t - w_k_last)."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, beta=0.1):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    last = [None] * len(a)  # the client's own model at the end of its last participation
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w if last[k] is None else w + beta * (w - last[k])
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            last[k] = x
            delta = delta + n[k] / n[S].sum() * (x - w)  # measured from w^t, not from the start
        w = w + delta
        path.append(w)
    return np.array(path)
