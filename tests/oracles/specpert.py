"""FedFFT: SAM whose perturbation is high-passed and not rescaled; FedFFT eq. 5 to 8, algorithm 1 (its line numbers).

ML 6.1, 7.1. Weights n_k where line 15 has 1/|S_t|; line 11 lacks the gradient's sign.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.01, rho=0.1, eps=1e-7):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    d = len(w0)
    low = int(np.floor(r * (d // 2 + 1)))  # ML 7.1
    w, path = w0, []  # line 1
    for t in range(rounds):  # line 2
        S = cohorts[t % len(cohorts)]  # line 3
        delta = np.zeros_like(w0)
        for k in S:  # line 4
            x = w  # line 5
            for _ in range(K[k]):  # line 6
                g = grad(a[k], b[k], x)
                spectrum = np.fft.rfft(rho * g / (np.linalg.norm(g) + eps))  # line 9, the norm of the raw gradient
                spectrum[:low] = 0  # line 10: Filter
                e = np.fft.irfft(spectrum, n=d)
                x = x - lr[t] * grad(a[k], b[k], x + e)  # line 11
            delta = delta + n[k] / n[S].sum() * (x - w)  # lines 13, 15
        w = w + delta
        path.append(w)
    return np.array(path)
