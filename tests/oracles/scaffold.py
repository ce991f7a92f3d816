"""SCAFFOLD, options I and II: Karimireddy et al., ICML 2020, algorithm 1 (its line numbers); ML 5.3."""

import numpy as np
from _problem import grad, participation


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, option="II"):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    N = len(a)
    w, path = w0, []
    c, ci = np.zeros_like(w0), np.zeros_like(a)  # lines 1, 2
    for t in range(rounds):  # line 3
        S = cohorts[t % len(cohorts)]  # line 4
        delta, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:  # lines 5, 6
            x = w  # line 7
            for _ in range(K[k]):  # line 8
                x = x - lr * (grad(a[k], b[k], x) - ci[k] + c)  # lines 9, 10
            new = ci[k] - c + (w - x) / (K[k] * lr)  # line 12 (ii), the client's own K
            if option == "I":
                new = grad(a[k], b[k], w)  # line 12 (i): the client's gradient at the server's model
            delta = delta + n[k] / n[S].sum() * (x - w)  # line 16, weighted as in FedAvg
            dc = dc + new - ci[k]  # line 16
            ci[k] = new  # line 14
        w = w + delta  # line 17, eta_g = 1
        c = c + dc / N  # line 17: |S|/N times the mean over S = the sum over S, over N, unweighted
        path.append(w)
    return np.array(path)
