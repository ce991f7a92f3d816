"""FedGloSS: Caldarola et al., CVPR 2025; ML 5.12. rho_local = 0 is the part alone, rho_local > 0 beside SAM.

form "admm": sigma of the ADMM; "code": divided by |S| once more, as released. warm: rounds until rho_t = rho, linearly
from rho0 (fedgloss_server.py: rho0 + t (rho - rho0) / T_s). schedule "released": that file appends to
the server's list T_s times the last entry of the clients' list, rho_l, and one step of its own (ML 1.15).
"""

import numpy as np
from _problem import grad, participation, rates


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None,
    rho=0.1, beta=10.0, form="admm", rho0=0.001, warm=0, rho_local=0.0, schedule="linear", rho_l=0.1, eps=1e-7,
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    P, sigma, dual = np.zeros_like(w0), np.zeros_like(w0), np.zeros_like(a)  # dual = sigma_k
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        radius = rho0 + (rho - rho0) * min(t / warm, 1) if warm else rho
        if schedule == "released":
            server_rhos = [rho0] + [rho_l + (rho - rho0) / warm] * warm + [rho] * rounds
            radius = server_rhos[t]
        size = np.linalg.norm(P)
        cast = w + radius * P / size if size > 0 else w  # w~: up along the last pseudo-gradient
        delta, total = np.zeros_like(w0), np.zeros_like(w0)
        for k in S:
            x = cast
            for _ in range(K[k]):
                g = grad(a[k], b[k], x)
                e = rho_local * g / (np.linalg.norm(g) + eps)
                x = x - lr[t] * (grad(a[k], b[k], x + e) - dual[k] + (x - cast) / beta)  # anchored at w~, not at w
            dual[k] = dual[k] - (x - cast) / beta
            delta = delta + n[k] / n[S].sum() * (x - cast)
            total = total + (x - cast)  # the dual's sum has no weights
        sigma = sigma - total / (beta * len(a) * (len(S) if form == "code" else 1))
        P = -delta
        w = w + delta - beta * sigma  # from the unperturbed w
        path.append(w)
    return np.array(path)
