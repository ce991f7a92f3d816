"""FedSpeed as printed: Sun et al., ICLR 2023, algorithm 1; ML 5.9. The paper's lambda is 1 / alpha, its alpha `mix`."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.1, alpha=0.1, mix=1.0, eps=1e-7
):  # fmt: skip
    K, _, cohorts = participation(a, steps, cohort, sizes)  # clients are weighed uniformly
    lr = rates(lr, rounds)
    lam = 1 / alpha
    w, path = w0, []
    dual = np.zeros_like(a)  # g^_i, the prox-correction term, = -h_i / lambda
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        mean = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                e = rho * g / (np.linalg.norm(g) + eps)  # the ascent of ML 4.1
                quasi = (1 - mix) * g + mix * grad(a[k], b[k], x + e)  # the merged quasi-gradient
                x = x - lr[t] * (quasi - dual[k] + (x - w) / lam)
            dual[k] = dual[k] - (x - w) / lam  # client end
            mean = mean + (x - lam * dual[k]) / len(S)  # the upload, amended by the dual: x_K - lambda g^_i
        w = mean  # server: nothing of the clients that are absent
        path.append(w)
    return np.array(path)
