"""FedUV: Son et al., CVPR 2024, as in algs/feduv.py (sonhamin/FedUV), class UVReg; MS 9.1, 9.2, 9.3, 13."""

import numpy as np
from _net import CLASSES, cross_entropy, forward, softmax, with_loss


def deviation(s):
    """mean_j relu(c - std_j), unbiased deviations of the columns of softmax(s) and of I_D: c = 1/sqrt(D)."""
    n, D = s.shape
    if n == 1:
        return 0.0
    p = softmax(s)
    square = ((p - p.mean(0)) ** 2).sum(0) / (n - 1)
    std = np.sqrt(np.where(square.real > 0, square, 0))
    return np.where(np.real(std) < D**-0.5, D**-0.5 - std, 0).mean()


def uniformity(f):
    """mean_{i<j} exp(-D2_ij / bandwidth), D2 = ||f_i - f_j||^2, bandwidth the lower median of those not 0."""
    i, j = np.triu_indices(len(f), 1)
    d = ((f[i] - f[j]) ** 2).sum(1)
    apart = d[d.real > 0]
    if not len(apart):
        return 0.0  # one sample, or all the same: MS 9.2
    middle = apart[np.argsort(apart.real)[(len(apart) - 1) // 2]]  # torch.median
    return np.exp(-d / middle).mean()


def trajectory(mu=0.5, lam=CLASSES / 4):
    def loss(w, x, y, i):
        s, f = forward(w, x)
        return cross_entropy(s, y) + mu * uniformity(f) + lam * deviation(s)

    return with_loss(loss)
