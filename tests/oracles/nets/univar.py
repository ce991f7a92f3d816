"""UniVarFL: Gupta et al. 2025, L = CE + mu L_HE + lambda L_V; MS 9.1, 9.2, 9.3, 13.

Algorithm 1, by its line numbers; lines 1 to 5 and the average after line 16 are `_net.py`'s.
"""

import numpy as np
from _net import CLASSES, cross_entropy, forward, softmax, with_loss


def variance(s, estimator="biased"):
    """L_V = (1/D) sum_j max(0, c - V_j), V_j the variance of column j of softmax(s), c that of a column of I_D."""
    n, D = s.shape
    if n == 1:
        return 0.0  # MS 13
    ddof = {"biased": 0, "unbiased": 1}[estimator]
    p = softmax(s)  # line 8
    v = ((p - p.mean(0)) ** 2).sum(0) / (n - ddof)  # line 9
    c = np.eye(D)[0].var(ddof=ddof)
    return np.where(v.real < c, c - v, 0).mean()  # line 10


def energy(f, eps=0.01, self_pairs=False):
    """L_HE = (1/n^2) sum_{i != j} 1 / (1 - z_i . z_j + eps), z_i = f_i / ||f_i||; i = j would add 1/(n eps)."""
    n = len(f)
    if n == 1:
        return 0.0  # MS 9.3: no pairs
    square = (f**2).sum(1, keepdims=True)
    z = f / np.where(square.real > 1e-24, np.sqrt(square), 1e-12)
    gap = 1 - z @ z.T  # line 13: 1 - the cosine of the angle
    terms = 1 / (np.where(gap.real > 0, gap, 0) + eps)
    return terms[~np.eye(n, dtype=bool)].sum() / n**2 + (1 / (n * eps) if self_pairs else 0)  # line 14


def trajectory(mu=0.5, lam=CLASSES / 4, estimator="biased", self_pairs=False, eps=0.01):
    def loss(w, x, y, i):
        s, f = forward(w, x)  # line 12: f
        return cross_entropy(s, y) + mu * energy(f, eps, self_pairs) + lam * variance(s, estimator)  # line 16

    return with_loss(loss)
