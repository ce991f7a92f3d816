from __future__ import annotations

import torch

from holdfast.method import Method, Part, part
from holdfast.slots import Close, Correct, Descend, Round, Step, Update
from holdfast.vector import Record, Vector


@part("nova", cites="wang2020")
class Nova(Part, Close, Update):
    """Averages updates per unit of local work, so that clients with more steps do not pull harder.

    d_k = (w_k - w^t)/a_k;  w <- w + (sum p_k a_k) sum p_k d_k.  Wang et al. 2020, eq. 6-8.
    a_k is K for plain steps, sum (1 - b^s)/(1 - b) beside momentum b, and (1 - (1 - lr A)^K)/(lr A) beside a pull
    A (w - w^t).  It is read off the parts beside it: an option b or A could only disagree with them.
    """

    uplink = {"a": "weighted"}
    excludes = {
        "eve": "eve compares variances of whole updates, and nova divides each by its steps; drop one",
        "awa": "awa compares clients' models, and nova sends their updates divided by their steps; drop one",
    }

    def refuses(self, method: Method) -> str | None:
        stiff = [p.text() for p in method.parts if isinstance(p, Correct) and p.stiffness]
        longer = [p.text() for p in method.parts if isinstance(p, Descend) and type(p).span is not Descend.span]
        if stiff and longer:
            return f"'nova' has no normaliser beside both {stiff[0]} and {longer[0]}; drop one of the two"
        return None

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        drag = s.lr * s.stiffness
        safe = torch.where(drag > 0, drag, 1)
        a = torch.where(drag > 0, (1 - (1 - safe) ** s.span) / safe, s.span)
        return delta / a, {"a": a.to(delta.dtype)}, {}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return r.up["a"] * delta, {}
