"""MOON: Li, He, Song, CVPR 2021, algorithm 1 (PartyLocalTraining) and eq. 3; MS 10.2."""

import numpy as np
from _net import cross_entropy, fedavg, forward, sgd


def cosine(a, b):
    na, nb = ((np.sqrt((v**2).sum(1))) for v in (a, b))
    return (a * b).sum(1) / np.where(na.real > 1e-8, na, 1e-8) / np.where(nb.real > 1e-8, nb, 1e-8)


def contrastive(z, glob, prev, tau):
    """mean -log[e^(cos(z, z_glob)/tau) / (e^(cos(z, z_glob)/tau) + e^(cos(z, z_prev)/tau))]"""
    near, far = np.exp(cosine(z, glob) / tau), np.exp(cosine(z, prev) / tau)
    return -np.log(near / (near + far)).mean()


def trajectory(mu=1.0, tau=0.5, last=None):
    """`last`: where to leave each client's last local model."""
    last = {} if last is None else last

    def end(i, t, w):
        def loss(v, x, y):
            s, z = forward(v, x)
            if i not in last:  # the pool of previous models is empty: one column, L_con = 0
                return cross_entropy(s, y)
            glob, prev = (forward(teacher, x)[1] for teacher in (w, pool[i]))
            return cross_entropy(s, y) + mu * contrastive(z, glob, prev, tau)

        pool = dict(last)
        last[i] = sgd(loss, w, i, t)  # who does not take part keeps an older one
        return last[i]

    return fedavg(end)
