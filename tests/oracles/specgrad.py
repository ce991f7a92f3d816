"""SpecGradFilter on FedAvg: Yuan, Yang, Guo, Richtarik, Lin, 2026, eq. 6, 7 and algorithm 1 (its line numbers).

ML 6.2, 7.1. Weights n_k where line 17 has 1/|S_t|.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.05):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    d = len(w0)
    low = int(np.floor(r * (d // 2 + 1)))  # ML 7.1: floor(r L) lowest bins of L = floor(d/2) + 1
    w, path = w0, []  # line 3
    for t in range(rounds):  # line 4
        S = cohorts[t % len(cohorts)]  # line 5
        delta = np.zeros_like(w0)
        for k in S:  # line 6
            x = w  # line 7
            for _ in range(K[k]):  # line 8, its epochs being steps (ML 6.2)
                spectrum = np.fft.rfft(grad(a[k], b[k], x))  # line 9; lines 10, 11: eq. 6, of the one tensor there is
                spectrum[:low] = 0
                x = x - lr[t] * np.fft.irfft(spectrum, n=d)  # line 12, eq. 7, 8, explicit length
            delta = delta + n[k] / n[S].sum() * (x - w)  # lines 15, 17
        w = w + delta
        path.append(w)
    return np.array(path)
