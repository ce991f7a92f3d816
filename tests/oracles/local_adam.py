"""FedAvg with Adam on the clients: Kingma, Ba, ICLR 2015, algorithm 1, begun anew in every round; MS 8 (RS setting).

wd: added to the gradient, as torch.optim.Adam has it (not AdamW).
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for r in range(rounds):
        S = cohorts[r % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x, m, v = w, np.zeros_like(w0), np.zeros_like(w0)  # initialise both moments
            for t in range(1, K[k] + 1):
                g = grad(a[k], b[k], x) + wd * x
                m = beta1 * m + (1 - beta1) * g  # biased first moment
                v = beta2 * v + (1 - beta2) * g**2  # biased second raw moment
                m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
                x = x - lr[r] * m_hat / (np.sqrt(v_hat) + eps)
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
