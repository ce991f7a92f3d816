"""FedFFT-D, with the right signs = FedDyn + SAM + high-passed perturbation; ML 6.1, 5.4, 7.1. Uniform weights."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.01, rho=0.1, alpha=0.1, eps=1e-7):
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
                g = grad(a[k], b[k], x)
                spectrum = np.fft.rfft(rho * g / (np.linalg.norm(g) + eps))
                spectrum[:low] = 0
                e = np.fft.irfft(spectrum, n=d)
                x = x - lr[t] * (grad(a[k], b[k], x + e) + alpha * h[k] + alpha * (x - w))
            h[k] = h[k] + (x - w)
            mean = mean + x / len(S)
        w = mean + h.mean(axis=0)
        path.append(w)
    return np.array(path)
