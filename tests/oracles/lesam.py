"""FedLESAM: Fan et al., ICML 2024; ML 5.11.

mode "paper": against the model the client received last; "last_update": against w^{t-1}, for every client;
"released": as the public code indexes (ML 1.5): against w^{t-1}, tensor j moved by the one number v_j, over
sum_j |v_j|; here there is one tensor.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=0.1, mode="paper"):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    received = [None] * len(a)  # w_k_old, none before the first participation
    previous = None  # w^{t-1}, none in round 1
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            old = received[k] if mode == "paper" else previous
            v = np.zeros_like(w0) if old is None else old - w
            size = np.linalg.norm(v)
            e = rho * v / size if size > 0 else np.zeros_like(w0)  # ML 5.11: fixed over the round
            if mode == "released":  # ML 1.5: a scalar for the only tensor there is
                e = np.full_like(w0, rho * np.sign(v[0]))
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x + e)  # ML 5.11: a single gradient
            received[k] = w  # ML 5.11, client end
            delta = delta + n[k] / n[S].sum() * (x - w)
        previous = w
        w = w + delta
        path.append(w)
    return np.array(path)
