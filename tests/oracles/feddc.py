"""FedDC = FedDyn + SCAFFOLD: Gao et al., CVPR 2022; ML 5.15. `alpha` is its a, in FedDyn's place; uniform weights.

code: what the released code does under unequal sizes, weight_k = n_k N/n (ML 5.15): a/weight_k, g/weight_k in the step
and in g_k, weight_k (g_k' - g_k) in g. It also divides by the first lr, a mistake that is not copied.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, alpha=0.1, code=False):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N = len(a)
    weight = n * N / n.sum() if code else np.ones(N)
    w, path = w0, []
    h = np.zeros_like(a)
    c, ci = np.zeros_like(w0), np.zeros_like(a)  # ML 5.15 calls them g and g_i
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        mean, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                anchor = w - h[k]  # the gradient of alpha/2 ||x - (w^t - h_k)||^2 + <x, c - c_k>
                x = x - lr[t] * (grad(a[k], b[k], x) + alpha / weight[k] * (x - anchor) + c / weight[k] - ci[k])
            h[k] = h[k] + (x - w)
            new = ci[k] - c / weight[k] - (x - w) / (K[k] * lr[t])
            dc = dc + weight[k] * (new - ci[k])
            ci[k] = new
            mean = mean + x / len(S)
        w = mean + h.mean(axis=0)
        c = c + dc / N
        path.append(w)
    return np.array(path)
