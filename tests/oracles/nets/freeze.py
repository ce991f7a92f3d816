"""FedBABU: Oh, Kim, Yun, ICLR 2022, algorithm 1: nobody trains the head; FedUV's code discards it. MS 11.1."""

import numpy as np
from _net import BODY, RATES, X, Y, batches, fedavg, gradient, plain


def trajectory(mode="frozen", losses=None):
    """`losses`: where to leave the mean loss of every client and round."""

    def end(i, t, w):
        v, seen = w, []
        for rows in batches(i, t):
            g = gradient(lambda u, rows=rows: plain(u, X[rows], Y[rows]), v)
            if mode == "frozen":
                g[BODY:] = 0  # learning rate 0 for the head: it stays what all began with
            seen.append(plain(v, X[rows], Y[rows]))
            v = v - RATES[t] * g
        if losses is not None:
            losses[i, t] = np.mean(seen)
        return v

    return fedavg(end, shared=slice(BODY))  # discard: the trained heads are thrown away
