"""Median and trimmed mean (Yin et al., ICML 2018, definitions 1, 2) and Krum (Blanchard et al., NeurIPS 2017).

Sizes do not weigh. Krum: the `m` updates with the least sum of squared distances to their live - f - 2 nearest others
(at least one), and their mean; ties go to the smallest id, as in the paper.
"""

import numpy as np
from _problem import grad, participation, rates


def median(u):
    return np.median(u, axis=0)  # of an even number: the mean of the two in the middle


def trimmed(u, beta=0.1):
    cut = int(np.floor(beta * len(u)))
    return np.sort(u, axis=0)[cut : len(u) - cut].mean(axis=0)


def krum(u, f=1, m=1):
    """u: updates in ascending id."""
    near = max(len(u) - f - 2, 1)
    scores = []
    for i in range(len(u)):
        others = sorted(float(((u[i] - u[j]) ** 2).sum()) for j in range(len(u)) if j != i)
        scores.append(sum(others[:near]))
    return np.mean([u[i] for i in sorted(range(len(u)), key=lambda i: (scores[i], i))[:m]], axis=0)


def trajectory(a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, rule="median", **options):
    K, _, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        updates = []
        for k in sorted(cohorts[t % len(cohorts)]):
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            updates.append(x - w)
        w = w + {"median": median, "trimmed": trimmed, "krum": krum}[rule](np.array(updates), **options)
        path.append(w)
    return np.array(path)
