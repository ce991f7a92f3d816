"""SpecGradFilter on FedDyn: the filter touches the data gradient only; ML 6.2, 2.2 (last row), 5.4. Uniform weights."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.05, alpha=0.1):
    K, _, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    d = len(w0)
    low = int(np.floor(r * (d // 2 + 1)))
    w, path = w0, []
    h = np.zeros_like(a)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        mean = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                spectrum = np.fft.rfft(grad(a[k], b[k], x))
                spectrum[:low] = 0
                x = x - lr[t] * (np.fft.irfft(spectrum, n=d) + alpha * h[k] + alpha * (x - w))  # the rest unfiltered
            h[k] = h[k] + (x - w)
            mean = mean + x / len(S)
        w = mean + h.mean(axis=0)
        path.append(w)
    return np.array(path)
