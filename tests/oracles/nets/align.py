"""FedAlign: Mendieta et al., CVPR 2022, as in methods/fedalign.py (mmendiet/FedAlign), its loop over a batch.

The last stage is the body here: x of 4 inputs to 6 outputs, so that a transmitting matrix x S(x)^T has rank one and
its largest singular value is ||x|| ||S(x)||; the thin sub-network is cut out, not masked.
"""

import numpy as np
from _net import forward, plain, split, with_loss


def length(v):
    return np.sqrt((v**2).sum(1))  # analytic, where np.linalg.norm is not


def smoothness(w, x, width):
    """mean over the batch of (top of the thin stage - top of the full one)^2; the full one is detached."""
    a, b, _, _ = split(w)
    rows, columns = (max(1, int(np.floor(width * n + 0.5))) for n in a.shape)
    thin = np.tanh(x[:, :columns] @ a[:rows, :columns].T + b[:rows])  # reuse_feature(t_feats[-2].detach())
    full = forward(w.real, x)[1]
    return ((length(x[:, :columns]) * length(thin) - length(x) * length(full)) ** 2).mean()  # F.mse_loss


def trajectory(mu=0.45, width=0.25):
    def loss(w, x, y, i):
        term = smoothness(w, x, width)
        return plain(w, x, y) + mu * (plain(w.real, x, y) / term.real) * term  # mu * (loss_CE / loss.item()) * loss

    return with_loss(loss)
