"""Gradient centralisation on FedAvg: minus the mean of each output channel (dim 0) of the tensor; ML 6.3, 7.5.

`shape` is the tensor's shape; a tensor of one dimension (or shape=None) is left as it is, as in Yong et al., ECCV 2020.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, shape=None):
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
                if shape is not None and len(shape) > 1:
                    rows = g.reshape(shape[0], -1)  # row-major: one row an output channel
                    g = (rows - rows.mean(axis=1, keepdims=True)).reshape(-1)
                x = x - lr[t] * g
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
