"""Ten methods with weight decay and the norm clip; ML 2.1 (scopes), the methods as in ML 5; golden rows of ML 8.3.

State that a method does not move stays zero, so that its term vanishes. `alpha` is FedDyn's or FedCM's.
"""

import numpy as np
from _problem import clip, grad, participation, rates

SAM, DYN = ("fedsam", "mofedsam", "fedgamma", "fedspeed", "fedsmoo"), ("feddyn", "fedspeed", "fedsmoo")


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None,
    name, max=1.0, scope="official", wd=0.01, mu=0.1, alpha=0.1, rho=0.1, eps=1e-7, form="paper",
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    cm = name in ("fedcm", "mofedsam")
    A = mu if name == "fedprox" else alpha if name in DYN else 0.0  # ML 2.1: the term A (x - w^t)
    c, D, s = np.zeros_like(w0), np.zeros_like(w0), np.zeros_like(w0)
    ci, h, dual = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta, dc, sent, K_mean = np.zeros_like(w0), np.zeros_like(w0), np.zeros_like(w0), 0.0
        for k in S:
            p = 1 / len(S) if name in DYN else n[k] / n[S].sum()
            x, e = w, np.zeros_like(w0)
            bias = c - ci[k] + alpha * h[k] + (1 - alpha) * D  # ML 2.1: b_i, fixed over the round
            for _ in range(K[k]):
                if name in SAM:  # ML 4.1; ML 5.10 for FedSMOO (its duals are zero elsewhere); no wd, no clip
                    v = grad(a[k], b[k], x) - dual[k] - s
                    e = rho * v / (np.linalg.norm(v) + eps)
                if name == "fedsmoo":
                    dual[k] = dual[k] + e - s
                data = (alpha if cm else 1.0) * grad(a[k], b[k], x + e)
                if scope == "official":  # ML 2.1: A x leaves the clip
                    u = clip(data + bias - A * w, max) + A * x
                elif scope == "prox_inside":
                    u = clip(data + bias + A * (x - w), max)
                else:  # data_only
                    u = clip(data, max) + bias + A * (x - w)
                x = x - lr[t] * (u + wd * x)
            new = ci[k] - c - (x - w) / (K[k] * lr[t]) if name in ("scaffold", "fedgamma") else ci[k]
            dc, ci[k] = dc + new - ci[k], new
            h[k] = h[k] + (x - w if name in DYN else 0.0)
            sent = sent + (dual[k] - e if form == "paper" else dual[k]) / len(S)
            delta, K_mean = delta + p * (x - w), K_mean + p * K[k]
        w, c = w + delta + h.mean(axis=0), c + dc / len(a)
        D = -delta / (K_mean * lr[t]) if cm else D
        s = rho * sent / (np.linalg.norm(sent) + eps) if name == "fedsmoo" else s
        path.append(w)
    return np.array(path)
