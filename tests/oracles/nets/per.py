"""FedPer: Arivazhagan et al. 2019, algorithms 1 and 2: base layers averaged, personal layers kept; MS 11.2."""

import numpy as np
from _net import BODY, OWN, START, fedavg, plain, sgd


def trajectory(heads=None):
    """`heads`: where to leave every client's own head; all begin with the common one."""
    heads = {} if heads is None else heads
    heads.update({i: START[BODY:] for i in range(len(OWN))})

    def end(i, t, w):
        v = sgd(plain, np.concatenate([w[:BODY], heads[i]]), i, t)  # both trained together, by one optimiser
        heads[i] = v[BODY:]
        return v

    return fedavg(end, shared=slice(BODY))
