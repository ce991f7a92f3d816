"""Clients whose data is made when they come: a rule and a seed stand for as many of them as one likes.

Li et al. 2020 (FedProx), 5.1 and its code: client k has y = argmax(W_k x + b_k) with every entry of W_k and b_k drawn
from N(u_k, 1), u_k from N(0, alpha); x from N(v_k, S), S = diag(j^-1.2), every entry of v_k from N(B_k, 1), B_k from
N(0, beta). 60 numbers, 10 classes; alpha and beta are standard deviations, as in the code. 'iid' clients share one
W, b and have v = 0. Sizes are equal here, lognormal there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.data.plan import generator
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

FEATURES, CLASSES = 60, 10
TESTED, HELD_OUT = 200, 10  # the test data: so many samples of each of so many clients
SCALES = np.arange(1, FEATURES + 1) ** -0.6  # the roots of j^-1.2


@dataclass(frozen=True)
class Synthetic:
    """The rule. Every client's numbers come from counters of (seed, client), so none depends on another's."""

    alpha: float
    beta: float
    clients: int
    each: int
    iid: bool
    seed: int

    def made(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        x, y = zip(*(self.client(i, "synthetic", self.each) for i in ids), strict=True)
        return np.concatenate(x), np.concatenate(y)

    def client(self, i: int, purpose: str, many: int) -> tuple[np.ndarray, np.ndarray]:
        law, draw = (
            generator(self.seed, "synthetic law", client=0 if self.iid else i),
            generator(self.seed, purpose, client=i),
        )
        u, middle = self.alpha * law.standard_normal(), self.beta * law.standard_normal()
        weight = u + law.standard_normal((FEATURES, CLASSES))
        bias = u + law.standard_normal(CLASSES)
        v = np.zeros(FEATURES) if self.iid else middle + law.standard_normal(FEATURES)
        x = v + SCALES * draw.standard_normal((many, FEATURES))
        return x.astype(np.float32), (x @ weight + bias).argmax(1).astype(np.int64)


def synthetic(
    alpha: float = 1.0, beta: float = 1.0, clients: int = 100, samples: int = 50, iid: bool = False, seed: int = 0
) -> Dataset:
    """FedProx's synthetic(alpha, beta) for any number of clients; the split is `own`."""
    rules = [
        (
            name,
            isinstance(value, int) and not isinstance(value, bool) and value >= least,
            f"a whole number from {least}",
        )
        for name, value, least in (("clients", clients, 1), ("samples", samples, 1), ("seed", seed, 0))
    ]
    rules += [
        (name, isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < np.inf, "0 or more")
        for name, value in (("alpha", alpha), ("beta", beta))
    ]
    given = {"alpha": alpha, "beta": beta, "clients": clients, "samples": samples, "seed": seed}
    wrong = [f"synthetic: {name}={given[name]!r} must be {what}" for name, good, what in rules if not good]
    if wrong:
        raise Refused(*wrong)
    source = Synthetic(float(alpha), float(beta), clients, samples, bool(iid), seed)
    tested = np.unique(np.linspace(0, clients - 1, min(clients, TESTED)).astype(int)).tolist()
    held_out = [source.client(i, "synthetic test", HELD_OUT) for i in tested]
    test_x, test_y = (np.concatenate(parts) for parts in zip(*held_out, strict=True))
    x, y = source.made([0])
    return Dataset.of(x, y, test_x, test_y, classes=CLASSES, mean=0.0, std=1.0, name="synthetic", source=source)
