"""FedFFT-D, with the right signs = FedDyn + SAM + high-passed perturbation; ML 6.1, 5.4, 7.1.

FedFFT, algorithm 2, by its line numbers; lines 9, 14, 15 are corrected as ML 6.1 has it. Uniform weights.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.01, rho=0.1, alpha=0.1, eps=1e-7):
    K, _, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    d = len(w0)
    low = int(np.floor(r * (d // 2 + 1)))
    w, path = w0, []  # line 1
    h = np.zeros_like(a)
    for t in range(rounds):  # line 2
        S = cohorts[t % len(cohorts)]  # line 3
        mean = np.zeros_like(w0)
        for k in S:  # line 4
            x = w  # line 5
            for _ in range(K[k]):  # line 6, its epochs being steps
                g = grad(a[k], b[k], x)
                spectrum = np.fft.rfft(rho * g / (np.linalg.norm(g) + eps))  # line 7
                spectrum[:low] = 0  # line 8
                e = np.fft.irfft(spectrum, n=d)
                x = x - lr[t] * (grad(a[k], b[k], x + e) + alpha * h[k] + alpha * (x - w))  # line 9, with -lambda_k
            h[k] = h[k] + (x - w)  # line 12: lambda_k = -alpha h_k
            mean = mean + x / len(S)
        w = mean + h.mean(axis=0)  # lines 14, 15: over |S_t|, and with the multiplier
        path.append(w)
    return np.array(path)
