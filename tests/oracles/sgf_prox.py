"""SpecGradFilter on FedProx: the filter touches the data gradient only; ML 6.2, 2.2 (last row), 5.2."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.05, mu=0.1):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    d = len(w0)
    low = int(np.floor(r * (d // 2 + 1)))
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                spectrum = np.fft.rfft(grad(a[k], b[k], x))
                spectrum[:low] = 0
                x = x - lr[t] * (np.fft.irfft(spectrum, n=d) + mu * (x - w))  # the prox term unfiltered
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
