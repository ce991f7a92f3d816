"""FedDisco: Ye et al., ICML 2023; MS 12.1. `classes` [N, C]: how many samples of each class a client has.

The method's own a and b are `pull` and `lift` here, because a and b are the problem.
"""

import numpy as np
from _problem import grad, participation, rates


def distance(counts, metric):
    """d_k between each row's label distribution and the uniform one; only KL is divided by its sum (MS 12.1)."""
    D = counts / counts.sum(axis=1, keepdims=True)
    T = np.full(D.shape[1], 1 / D.shape[1])
    if metric == "cosine":
        return 1 - D @ T / (np.linalg.norm(D, axis=1) * np.linalg.norm(T))
    if metric != "kl":
        return np.linalg.norm(D - T, ord={"l1": 1, "l2": 2}[metric], axis=1)
    kl = np.where(D > 0, D * np.log(np.where(D > 0, D, 1) / T), 0).sum(axis=1)  # 0 log 0 = 0
    return kl / kl.sum() if kl.sum() > 0 else np.zeros_like(kl)


def weights(r, d, pull, lift):
    """ReLU(r - a d + b), sum 1; r itself if nobody is left."""
    raw = np.maximum(r - pull * d + lift, 0)
    return raw / raw.sum() if raw.sum() > 0 else r


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, classes, pull=0.5, lift=0.1, metric="kl"
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    classes = np.asarray(classes, dtype=float)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        p = weights(n[S] / n[S].sum(), distance(classes[S], metric), pull, lift)  # over the participants alone
        delta = np.zeros_like(w0)
        for k, p_k in zip(S, p, strict=True):
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            delta = delta + p_k * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
