from __future__ import annotations

import torch
from torch import Tensor

from holdfast import noise, privacy
from holdfast.method import Method, Part, part
from holdfast.slots import Close, Merge, Round, Step
from holdfast.vector import Record, Vector


@part("dp", cites="mcmahan2018")
class Dp(Part, Close, Merge):
    """Central differential privacy: updates are clipped, and noise hides in their average what one client can do to it.

    u_i <- u_i min(1, clip/||u_i||);  delta <- (sum_S u_i + noise clip N(0, I))/m.
    McMahan et al. 2018, alg. 1, with its fixed divisor: m is how many clients a round has on average, whoever is drawn
    and trains; where that is not known, as in tests, how many were drawn.  Clients weigh equally.  The server is
    trusted: the guarantee is for whoever sees the models, not for whoever sees the updates.
    """

    clip: float = 1.0
    noise: float = 1.0
    ranges = {"clip": "> 0", "noise": ">= 0"}
    equal = True
    counts = True
    sums = True
    guards = frozenset(("ids", "cards", "live", "cohort", "deltas", "weights", "up", "mean", "weighted", "reduce"))
    excludes = {"ldp": "both clip and add noise; keep one"}

    def refuses(self, method: Method) -> str | None:
        return privacy.objection(self, method)

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return privacy.clipped(delta, self.clip), {}, {}

    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        many = len(r.ids) if r.expected is None else r.expected
        index = torch.arange(r.layout.shared_size, device=deltas.device)
        hidden = self.noise * self.clip * r.layout.arrived(noise.normal(r.key, index).to(deltas.dtype))
        return (deltas.sum(0) + hidden) / many
