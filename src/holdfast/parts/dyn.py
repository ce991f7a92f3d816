from __future__ import annotations

from holdfast.learned import relative_size
from holdfast.method import Method, Part, part
from holdfast.slots import Close, Correct, Round, Step, Update, zeros
from holdfast.vector import Record, Vector


@part("dyn", cites="acar2021")
class Dyn(Part, Correct, Close, Update):
    """Dynamic regularisation: each client's loss is bent until its optimum is the global one.

    g + alpha h_i + alpha (w - w^t);  h_i <- h_i + u_i;  w <- mean_S(w_i) + mean over all N of h.
    Acar et al. 2021, alg. 1, with lambda_i = -alpha h_i and u_i = w_i - w^t, beside init too.  The evaluated model
    holds the dual.  Clients weigh equally.  alpha = 0 is not FedAvg: the server still adds the mean of h.
    mean_n, samples of all clients over their number, gives alpha mean_n/n_i, as the codes of FedDyn and FedDC have it;
    0 is the paper's alpha for all.
    """

    alpha: float = 0.1
    mean_n: float = 0.0
    ranges = {"alpha": ">= 0", "mean_n": ">= 0"}
    memory = {"h": zeros}
    state = {"h": zeros}
    stiffness = "alpha"
    equal = True
    observes = frozenset({Close})
    excludes = {"nova": "dyn's duals sum whole updates, and nova sends them divided by their steps; drop one"}

    def refuses(self, method: Method) -> str | None:
        if self.mean_n and any(getattr(p, "scope", "") == "official" for p in method.parts):
            return ("dyn(mean_n=...) gives every client an alpha of its own, and clip(scope='official') takes out one "
                    "for all; take scope='prox_inside' or 'data_only'")  # fmt: skip
        return None

    def correct(self, s: Step) -> Vector:
        return self.alpha / relative_size(s.card["n"], self.mean_n) * (s.mem["h"] + s.w - s.anchor)

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"h": s.mem["h"] + delta}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        h = r.st["h"] + r.cohort / r.clients * r.mean
        return delta + h, {"h": h}
