"""SCAFFOLD, options I and II: Karimireddy et al., ICML 2020, algorithm 1 (its line numbers); ML 5.3.

scale: of the correction; .1 in FedLESAM-S as released (ML 1.5). code: FedDyn's repository under unequal sizes,
weight_k = n_k N/n: c/weight_k in the step, weight_k (c_k' - c_k) in c, c itself in c_k', and a uniform mean of models.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, option="II", scale=1.0, code=False
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N = len(a)
    weight = n * N / n.sum() if code else np.ones(N)
    p = np.ones(N) if code else n
    w, path = w0, []
    c, ci = np.zeros_like(w0), np.zeros_like(a)  # lines 1, 2
    for t in range(rounds):  # line 3
        S = cohorts[t % len(cohorts)]  # line 4
        delta, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:  # lines 5, 6
            x = w  # line 7
            for _ in range(K[k]):  # line 8
                x = x - lr[t] * (grad(a[k], b[k], x) + scale * (c / weight[k] - ci[k]))  # lines 9, 10
            new = ci[k] - c + (w - x) / (K[k] * lr[t])  # line 12 (ii), the client's own K
            if option == "I":
                new = grad(a[k], b[k], w)  # line 12 (i): the client's gradient at the server's model
            delta = delta + p[k] / p[S].sum() * (x - w)  # line 16, weighted as in FedAvg
            dc = dc + weight[k] * (new - ci[k])  # line 16
            ci[k] = new  # line 14
        w = w + delta  # line 17, eta_g = 1
        c = c + dc / N  # line 17: |S|/N times the mean over S = the sum over S, over N, unweighted
        path.append(w)
    return np.array(path)
