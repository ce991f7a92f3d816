"""Uniform quantisation by stochastic rounding: Alistarh et al., NeurIPS 2017 (QSGD), section 3, with max |u| as norm.

The levels are M (2 i/n - 1), i = 0 .. n, with n = 1, 2, 14 or 254 for 1, 2, 4 or 8 bits. An entry goes to one of its
two neighbours: up where draw(t, k) >= 1 - its distance from the lower one, draw a number in [0, 1) an entry; 1/2 for
nearest.
"""

import numpy as np
from _problem import grad, participation, rates


def quantized(u, n, draw):
    M = np.abs(u).max()
    if M == 0:
        return u
    levels = M * (2 * np.arange(n + 1) / n - 1)
    out = np.empty_like(u)
    for j, x in enumerate(u):
        low = min(max(int(np.floor((x / M + 1) * n / 2)), 0), n)
        distance = (x / M + 1) * n / 2 - low
        out[j] = levels[min(low + (distance + draw[j] >= 1), n)]
    return out


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, n=254, draw=None):
    K, size, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            r = np.full(len(w0), 0.5) if draw is None else draw(t, k, K[k])
            delta = delta + size[k] / size[S].sum() * quantized(x - w, n, r)
        w = w + delta
        path.append(w)
    return np.array(path)
