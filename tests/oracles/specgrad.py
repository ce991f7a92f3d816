"""SpecGradFilter on FedAvg: Yuan, Yang, Guo, Richtarik, Lin, 2026, eq. 6, 7 and algorithm 1; ML 6.2, 7.1."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.05):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    d = len(w0)
    low = int(np.floor(r * (d // 2 + 1)))  # ML 7.1: floor(r L) lowest bins of L = floor(d/2) + 1
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                spectrum = np.fft.rfft(grad(a[k], b[k], x))  # eq. 6
                spectrum[:low] = 0
                x = x - lr[t] * np.fft.irfft(spectrum, n=d)  # eq. 7, explicit length
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
