from __future__ import annotations

from typing import Literal

from torch import Tensor

from holdfast import conflict, spectrum
from holdfast.method import Part, part
from holdfast.slots import Merge, Round


@part("gh", cites="zhang2023gh")
class Gh(Part, Merge):
    """Gradient harmonisation: takes out of each update what points against another client's.

    For k, for j != k in random order: if <g_k, u_j> < 0 then g_k <- g_k - <g_k, u_j>/||u_j||^2 u_j, u_j the original.
    Zhang, Sun, Chen 2023 (FedGH), alg. 1; its text tests the original pair (test_on).  Two exactly opposite updates
    vanish, whatever their lengths.  The average usually gets longer, so there are controls: keep 'length' is the plain
    average made as long as FedGH's, 'direction' FedGH's made as long as the plain one.
    """

    test_on: Literal["running", "original"] = "running"
    keep: Literal["both", "length", "direction"] = "both"
    jumps = True

    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        mix = conflict.projected(deltas, conflict.visits(r.key, r.ids), self.test_on == "original")
        harmonised = mix @ deltas
        if self.keep == "both":
            return harmonised
        plain, new = r.weights @ deltas, r.weights @ harmonised
        return plain * spectrum.ratio(new, plain) if self.keep == "length" else new * spectrum.ratio(plain, new)
