"""FedSAM whose perturbation passes through a filter of _spectral.py or _controls.py; ML 6.1 (FedFFT and its controls).

removed: as in filtered.py.
"""

import numpy as np
from _controls import coordclip, gc, l2pert
from _problem import grad, participation, rates
from _spectral import specgrad

FILTERS = {"specpert": specgrad, "gcpert": gc, "l2pert": l2pert, "coordclip": coordclip}


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None,
    name="specpert", shape=None, rho=0.1, eps=1e-7, removed=None, **options,
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)

    def change(e, *when):
        bins = removed(*when) if callable(removed) else removed
        more = options if bins is None else {**options, "removed": [bins]}
        return FILTERS[name]([e.reshape(shape or e.shape)], **more)[0].reshape(-1)

    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for i in range(K[k]):
                g = grad(a[k], b[k], x)
                e = change(rho * g / (np.linalg.norm(g) + eps), t, k, i)  # after the division: the radius shrinks
                x = x - lr[t] * grad(a[k], b[k], x + e)
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
