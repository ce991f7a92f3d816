"""FedAdam, FedYogi, FedAdagrad: Reddi et al., ICLR 2021, algorithm 2; MS 5.

`adam_lr` is the server's eta, `lr` the clients'. Adagrad's v is a sum, so it has no bias that could be corrected.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None,
    adam_lr=0.1, beta1=0.9, beta2=0.99, tau=1e-3, v0="tau2", bias_correction=False, rule="adam",
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    m = np.zeros_like(w0)
    v = np.full_like(w0, tau**2 if v0 == "tau2" else 0.0)
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            delta = delta + n[k] / n[S].sum() * (x - w)
        m = beta1 * m + (1 - beta1) * delta
        if rule == "adagrad":
            v = v + delta**2
        elif rule == "yogi":
            v = v - (1 - beta2) * delta**2 * np.sign(v - delta**2)  # sign(0) = 0
        else:
            v = beta2 * v + (1 - beta2) * delta**2
        m_hat, v_hat = m, v
        if bias_correction:  # Adam's own: both moments, before the root; the same for Yogi
            m_hat, v_hat = m / (1 - beta1 ** (t + 1)), v / (1 - beta2 ** (t + 1))
        w = w + adam_lr * m_hat / (np.sqrt(v_hat) + tau)  # tau outside the root
        path.append(w)
    return np.array(path)
