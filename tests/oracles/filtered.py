"""FedAvg, or FedProx (mu > 0), whose gradient passes through a filter of _spectral.py or _controls.py; ML 6.2, 2.1.

on "data": the data gradient alone, before the corrections; "all": gradient and corrections. The decay never is.
removed(t, k, i): the bins that go in step i of client k in round t (band 'fresh'); a list: at every step ('random').
shuffled(t, k, i): the order of a convolution's entries for client k (order 'random').
"""

import numpy as np
from _controls import gc, l2
from _problem import grad, participation, rates
from _spectral import specgrad

FILTERS = {"specgrad": specgrad, "gc": gc, "l2": l2}


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None,
    name="specgrad", shape=None, mu=0.0, wd=0.0, on="data", removed=None, shuffled=None, **options,
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)

    def change(g, *when):
        bins = removed(*when) if callable(removed) else removed
        more = options if bins is None else {**options, "removed": [bins]}
        if shuffled is not None:
            more = {**more, "shuffled": [shuffled(*when)]}
        return FILTERS[name]([g.reshape(shape or g.shape)], **more)[0].reshape(-1)

    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        delta = np.zeros_like(w0)
        for k in S:
            x = w
            for i in range(K[k]):
                g, prox = grad(a[k], b[k], x), mu * (x - w)
                u = change(g, t, k, i) + prox if on == "data" else change(g + prox, t, k, i)
                x = x - lr[t] * (u + wd * x)
            delta = delta + n[k] / n[S].sum() * (x - w)
        w = w + delta
        path.append(w)
    return np.array(path)
