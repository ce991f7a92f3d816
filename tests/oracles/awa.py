"""FedAWA: Shi et al., CVPR 2025; MS 12.2. The gradient in the logits is a complex step (exact to rounding).

One Adam step a round on the logits, per client id; the weights used are those before the step.
"""

import numpy as np
from _problem import grad, participation, rates


def softmax(T):
    e = np.exp(T - T.real.max())
    return e / e.sum()


def loss(T, models, w, far):
    """sum lambda_k D(w_k, w) + sum lambda_k ||u_k - sum_j lambda_j u_j||, D = 1 - cos or mean squared difference."""
    p, U = softmax(T), models - w
    cosines = models @ w / (np.linalg.norm(models, axis=1) * np.linalg.norm(w))
    D = 1 - cosines if far == "cos" else (U**2).mean(axis=1)
    return p @ D + p @ np.sqrt(((U - p @ U) ** 2).sum(axis=1))  # no abs: stays analytic


def gradient(T, *rest, h=1e-30):
    return np.array([loss(T + 1j * h * unit, *rest).imag / h for unit in np.eye(len(T))])


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None,
    awa_lr=0.001, init="fraction", distance="cos", keep=False, gamma=1.0,
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    N = len(a)
    w, path = w0, []
    T, known = np.zeros(N), np.zeros(N, dtype=bool)
    m, v, count = np.zeros(N), np.zeros(N), np.zeros(N)  # Adam's, per client
    total = n[cohorts[0]].mean() * N  # what the first round lets the server think of the population
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        models = []
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            models.append(x)
            if not known[k]:  # n_k/N by MS 12.2
                share = n[k] / total
                T[k], known[k] = (np.log(share) if init == "log" else share), True
        models = np.array(models)
        new = gamma * softmax(T[S]) @ models  # before the step
        g = gradient(T[S], models, w, distance)
        if not keep:  # a new optimiser every round
            m, v, count = np.zeros(N), np.zeros(N), np.zeros(N)
        m[S], v[S], count[S] = 0.5 * m[S] + 0.5 * g, 0.999 * v[S] + 0.001 * g**2, count[S] + 1
        m_hat, v_hat = m[S] / (1 - 0.5 ** count[S]), v[S] / (1 - 0.999 ** count[S])
        T[S] = T[S] - awa_lr * m_hat / (np.sqrt(v_hat) + 1e-8)
        w = new
        path.append(w)
    return np.array(path)
