"""FedFFT-S, with the right signs = SCAFFOLD II + SAM + high-passed perturbation; ML 6.1, 5.3, 7.1."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.01, rho=0.1, eps=1e-7):
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
                g = grad(a[k], b[k], x)
                spectrum = np.fft.rfft(rho * g / (np.linalg.norm(g) + eps))
                spectrum[:low] = 0
                e = np.fft.irfft(spectrum, n=d)
                x = x - lr[t] * (grad(a[k], b[k], x + e) - ci[k] + c)  # ML 6.1: the printed signs diverge
            new = ci[k] - c - (x - w) / (K[k] * lr[t])
            delta = delta + n[k] / n[S].sum() * (x - w)
            dc = dc + new - ci[k]
            ci[k] = new
        w = w + delta
        c = c + dc / N
        path.append(w)
    return np.array(path)
