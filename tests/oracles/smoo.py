"""FedSMOO whole (dual-corrected SAM on FedDyn): Sun et al., ICML 2023; ML 5.10. form: what a client sends for s."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.1, alpha=0.1, form="paper", eps=1e-7):
    K, _, cohorts = participation(a, steps, cohort, sizes)  # clients are weighed uniformly
    lr = rates(lr, rounds)
    w, path = w0, []
    h, mu, s = np.zeros_like(a), np.zeros_like(a), np.zeros_like(w0)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        mean, sent = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:
            x, e = w, np.zeros_like(w0)
            for _ in range(K[k]):
                v = grad(a[k], b[k], x) - mu[k] - s  # ML 5.10, local step
                e = rho * v / (np.linalg.norm(v) + eps)
                mu[k] = mu[k] + e - s  # at every local step; persists over rounds
                x = x - lr[t] * (grad(a[k], b[k], x + e) + alpha * h[k] + alpha * (x - w))
            h[k] = h[k] + (x - w)  # ML 5.10, client end
            sent = sent + (mu[k] - e if form == "paper" else mu[k]) / len(S)
            mean = mean + x / len(S)
        s = rho * sent / (np.linalg.norm(sent) + eps)  # ML 5.10, server
        w = mean + h.mean(axis=0)
        path.append(w)
    return np.array(path)
