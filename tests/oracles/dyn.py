"""FedDyn: Acar et al., ICLR 2021, algorithm 1 in the h-form (dual of client k = -alpha h_k); ML 5.4, AD B1.

code: alpha / weight_k at client k, weight_k = n_k N/n, as the released code has it under unequal sizes.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, alpha=0.1, code=False):
    K, n, cohorts = participation(a, steps, cohort, sizes)  # the mean of the models is uniform
    lr = rates(lr, rounds)
    own = alpha / (n * len(a) / n.sum()) if code else np.full(len(a), alpha)
    w, path = w0, []
    h = np.zeros_like(a)  # h_k = sum of the client's updates so far
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        mean = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * (grad(a[k], b[k], x) + own[k] * h[k] + own[k] * (x - w))  # ML 5.4, local step
            h[k] = h[k] + (x - w)  # ML 5.4, client end: lambda_k <- lambda_k - alpha Delta_k
            mean = mean + x / len(S)
        w = mean + h.mean(axis=0)  # ML 5.4, server: mean over S of the models + mean over all N of h
        path.append(w)  # the corrected model is the one evaluated
    return np.array(path)
