"""FedSOL: Lee et al., CVPR 2024; ML 5.13, with l_p = 1/2 ||w - w^t||^2 (form 'distance'), whose gradient is w - w^t.

adaptive: e times |w - w^t|, which is scaled to length 1 along the tensor's first dimension (`shape`; None: one vector).
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rho=1.0, floor=1e-6, adaptive=False, shape=None
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                v = x - w
                size = np.linalg.norm(v)
                # at the first step w = w^t: rounding noise would become a perturbation of length rho
                e = rho * v / (size + 1e-12) if size > floor else np.zeros_like(w0)
                if adaptive:
                    away = np.abs(v).reshape(shape or v.shape)
                    columns = np.sqrt((away**2).sum(axis=0, keepdims=True))
                    e = e * (away / np.maximum(columns, 1e-12)).reshape(-1)
                x = x - lr[t] * grad(a[k], b[k], x + e)  # the gradient of the data loss at w + e
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
