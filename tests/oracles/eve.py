"""FedEve: Shen et al., 2025, eq. 13 to 16; MS 8, AD B2; eta_g = 1.

count_empty: clients without samples, whose Delta is 0, count in m and in R (public code, MS 8).
predict (AD A18) "none": no look-ahead and no filter, FedAvg; "last": ahead along the last mean, not the filtered one.
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None,
    q_mode="innovation", r_mean="weighted", count_empty=False, predict="momentum",
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    called = [len(S) for S in cohort] if cohort else [len(a)]
    d = len(w0)
    w, path = w0, []
    M, s = np.zeros_like(w0), 0.0
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        empty = called[t % len(cohorts)] - len(S) if count_empty else 0
        m = len(S) + empty
        cast = w if predict == "none" else w - M  # predict: all clients train from the look-ahead point
        Delta = {}
        for k in S:
            x = cast
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            Delta[k] = cast - x  # to be subtracted
        mean = sum(n[k] / n[S].sum() * Delta[k] for k in S)  # observe
        centre = mean if r_mean == "weighted" else sum(Delta[k] for k in S) / m
        Q = np.sum((M - mean if q_mode == "innovation" else mean) ** 2) / (m * d)
        R = (sum(np.sum((Delta[k] - centre) ** 2) for k in S) + empty * np.sum(centre**2)) / (m**2 * d)
        ahead = s + Q  # filter
        G = ahead / (ahead + R) if ahead + R > 0 else 1.0  # MS 8, edge case
        step = mean if predict == "none" else M + G * (mean - M)
        w = w - step  # from w, not from the point that was sent
        M = mean if predict == "last" else step
        s = (1 - G) * ahead
        path.append(w)
    return np.array(path)
