"""FedFFT: SAM whose perturbation is high-passed and not rescaled; FedFFT eq. 5 to 8; ML 6.1, 7.1."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, r=0.01, rho=0.1, eps=1e-7):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    d = len(w0)
    low = int(np.floor(r * (d // 2 + 1)))  # ML 7.1
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                spectrum = np.fft.rfft(rho * g / (np.linalg.norm(g) + eps))  # the norm of the raw gradient
                spectrum[:low] = 0
                e = np.fft.irfft(spectrum, n=d)
                x = x - lr[t] * grad(a[k], b[k], x + e)
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
