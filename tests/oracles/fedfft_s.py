"""FedFFT-S, with the right signs = SCAFFOLD II + SAM + high-passed perturbation; ML 6.1, 5.3, 7.1.

FedFFT, algorithm 3, by its line numbers; lines 9, 14, 15 are corrected as ML 6.1 has it.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.01, rho=0.1, eps=1e-7):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N, d = len(a), len(w0)
    low = int(np.floor(r * (d // 2 + 1)))
    w, path = w0, []  # line 1
    c, ci = np.zeros_like(w0), np.zeros_like(a)
    for t in range(rounds):  # line 2
        S = cohorts[t % len(cohorts)]  # line 3
        delta, dc = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:  # line 4
            x = w  # line 5
            for _ in range(K[k]):  # line 6, its epochs being steps
                g = grad(a[k], b[k], x)
                spectrum = np.fft.rfft(rho * g / (np.linalg.norm(g) + eps))  # line 7
                spectrum[:low] = 0  # line 8
                e = np.fft.irfft(spectrum, n=d)
                x = x - lr[t] * (grad(a[k], b[k], x + e) - ci[k] + c)  # line 9: the printed signs diverge
            new = ci[k] - c - (x - w) / (K[k] * lr[t])  # line 11, E being steps
            delta = delta + n[k] / n[S].sum() * (x - w)
            dc = dc + new - ci[k]
            ci[k] = new  # line 12
        w = w + delta  # line 14, a mean
        c = c + dc / N  # line 15: 1/N sum_S of the changes
        path.append(w)
    return np.array(path)
