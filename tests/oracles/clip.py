"""FedAvg or FedProx (mu > 0) with the norm clip in its three scopes; ML 2.1 (clip-scope flag), ML 5.2, decisions 2."""

import numpy as np
from _problem import clip, grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, max=10.0, scope="official", mu=0.0, wd=0.0):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                if scope == "official":  # ML 2.1: the part mu x is moved out of the clip, into the decay
                    u = clip(g - mu * w, max) + mu * x
                elif scope == "prox_inside":  # ML 2.1: the whole u is clipped
                    u = clip(g + mu * (x - w), max)
                else:  # ML 2.1: data_only
                    u = clip(g, max) + mu * (x - w)
                x = x - lr[t] * (u + wd * x)  # ML 2.1: the decay is never clipped
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
