"""PCGrad on updates: Yu et al., NeurIPS 2020, algorithm 1, the sum of the projected vectors, unweighted; MS 7.

form "code": ascending order, and a vector also meets its own original (tianheyu927/PCGrad).
order(t, k, others) -> the other clients of round t (from 0) in the order in which client k meets them; None: ascending.
"""

import numpy as np
from _problem import grad, participation, rates


def projected(u, form="paper", order=lambda k, others: others):
    """u: client -> update; the vectors after projection."""
    found = {}
    for k in u:
        v = u[k]  # line 2: the running vector
        others = sorted(j for j in u if j != k)
        for j in sorted(u) if form == "code" else order(k, others):  # line 4
            if v @ u[j] < 0:  # line 5: against the original of j
                v = v - (v @ u[j]) / (u[j] @ u[j]) * u[j]  # line 7
        found[k] = v
    return found


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, form="paper", order=None):
    K, _, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        u = {}
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            u[k] = x - w
        chosen = (lambda k, others, t=t: order(t, k, others)) if order else (lambda k, others: others)
        w = w + sum(projected(u, form, chosen).values())  # line 11
        path.append(w)
    return np.array(path)
