"""FedAvg with local SGD momentum, the buffer fresh each round; AD A13 (torch.optim.SGD, decay through the buffer)."""

import numpy as np
from _problem import grad, participation, rates


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, beta=0.9, wd=0.0):
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x, buf = w, np.zeros_like(w0)  # A13: buf = 0 at round start
            for _ in range(K[k]):
                d = grad(a[k], b[k], x) + wd * x  # A13: d = u + wd w
                buf = beta * buf + d  # A13: no dampening, no Nesterov
                x = x - lr[t] * buf
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
