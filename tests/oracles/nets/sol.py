"""FedSOL: Lee et al., CVPR 2024, as in algorithms/fedsol_*/ClientTrainer.py (Lee-Gihun/FedSOL); ML 5.13.

where: its switches perturb_head and perturb_body, which take the other part's gradient out before the norm.
"""

import numpy as np
from _net import BODY, RATES, X, Y, batches, fedavg, forward, gradient, plain, softmax, split


def divergence(v, w, x, T):
    """l_p = KL(softmax(z_glob/T) || softmax(z_loc/T)), mean over the batch, no T^2."""
    p, q = (softmax(forward(u, x)[0] / T) for u in (w, v))
    return (p * (np.log(p) - np.log(q))).sum(1).mean()


def lean(v, w):
    """|v - w| over its 2-norm along dimension 0, tensor by tensor: F.normalize(|p - ref|, 2, dim=0)."""
    far = [np.abs(piece) for piece in split(v - w)]
    return np.concatenate([(p / np.maximum(np.sqrt((p**2).sum(0)), 1e-12)).ravel() for p in far])


def trajectory(rho=1.0, T=3.0, form="kl", adaptive=False, floor=1e-6, where="all"):
    def end(i, t, w):
        v = w
        for rows in batches(i, t):
            x, y = X[rows], Y[rows]
            g = v - w if form == "distance" else gradient(lambda u, x=x: divergence(u, w, x, T), v)
            if where != "all":
                g = np.where((np.arange(len(g)) < BODY) == (where == "body"), g, 0)
            norm = np.linalg.norm(g)
            e = np.zeros_like(v) if norm <= floor else rho * g / (norm + 1e-12)  # the first step of all has g = 0
            e = e * lean(v, w) if adaptive else e
            v = v - RATES[t] * gradient(lambda u, x=x, y=y: plain(u, x, y), v + e)  # from v, not from v + e
        return v

    return fedavg(end)
