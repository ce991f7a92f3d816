"""FedDecorr: Shi et al., ICLR 2023, as in loss.py (bytedance/FedDecorr); MS 10.1."""

import numpy as np
from _net import forward, plain, with_loss


def correlation(f):
    """Mean of K_ab^2 over a != b, divided by n: K = Xh' Xh of standardised columns, ddof 1, 1e-8 under the root."""
    n, width = f.shape
    if n == 1:
        return 0.0
    x = f - f.mean(0)
    x = x / np.sqrt(1e-8 + (x**2).sum(0) / (n - 1))
    k = x.T @ x
    return (k[~np.eye(width, dtype=bool)] ** 2).mean() / n


def trajectory(beta=0.1):
    return with_loss(lambda w, x, y, i: plain(w, x, y) + beta * correlation(forward(w, x)[1]))
