"""SCAFFOLD, option I: Karimireddy et al., ICML 2020, algorithm 1 (its line numbers); ML 5.3."""

import numpy as np
from _net import COMPANY, OWN, RATES, SIZES, START, X, Y, batches, gradient, plain


def trajectory():
    w, path = START, []
    c, ci = np.zeros_like(START), np.zeros((len(OWN), len(START)))  # lines 1, 2
    for t, ids in enumerate(COMPANY):  # lines 3, 4
        step, change = np.zeros_like(w), np.zeros_like(w)
        for i in ids:  # lines 5, 6
            v = w  # line 7
            for rows in batches(i, t):  # line 8
                g = gradient(lambda u, rows=rows: plain(u, X[rows], Y[rows]), v)  # line 9
                v = v - RATES[t] * (g - ci[i] + c)  # line 10
            new = gradient(lambda u, i=i: plain(u, X[OWN[i]], Y[OWN[i]]), w)  # line 12 (i): over all of its samples
            step = step + SIZES[i] / SIZES[ids].sum() * (v - w)  # line 16, weighted as in FedAvg
            change = change + new - ci[i]
            ci[i] = new  # line 14
        w, c = w + step, c + change / len(OWN)  # line 17
        path.append(w)
    return np.array(path)
