"""SpecGradFilter on SCAFFOLD II: the filter touches the data gradient only; ML 6.2, 2.2 (last row), 5.3."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.05):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N, d = len(a), len(w0)
    low = int(np.floor(r * (d // 2 + 1)))
    w, path = w0, []
    c, ci = np.zeros_like(w0), np.zeros_like(a)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                spectrum = np.fft.rfft(grad(a[k], b[k], x))
                spectrum[:low] = 0
                x = x - lr[t] * (np.fft.irfft(spectrum, n=d) + c - ci[k])  # the variates unfiltered
            new = ci[k] - c - (x - w) / (K[k] * lr[t])
            delta = delta + n[k] / n[S].sum() * (x - w)
            dc = dc + new - ci[k]
            ci[k] = new
        w = w + delta
        c = c + dc / N
        path.append(w)
    return np.array(path)
