from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from holdfast.conflict import scatter_slope
from holdfast.method import Part, part
from holdfast.slots import Round, Update, Weigh, When, each
from holdfast.vector import Record, Vector


@part("awa", cites="shi2025awa")
class Awa(Part, Weigh, Update):
    """Learns the clients' weights: one Adam step a round on logits T, weights softmax(T) over the round.

    sum_k l_k (1 - cos(w_k, w)) + sum_k l_k ||u_k - sum_j l_j u_j||; the step counts from the next round on.
    Shi et al. 2025 (FedAWA), alg. 1.  Logits belong to clients, not to places in a round as in the code, and start at
    n_k/sum n of their first round ('log': its logarithm).  keep: Adam's moments last.  gamma scales the new model.
    """

    lr: float = 1e-3
    init: Literal["fraction", "log"] = "fraction"
    distance: Literal["cos", "euc"] = "cos"
    keep: bool = False
    gamma: float = 1.0
    ranges = {"lr": ">= 0", "gamma": "> 0"}
    state = {"logits": each, "seen": each, **{k: When("keep", True, each) for k in ("m", "v", "steps")}}
    jumps = True

    def logits(self, r: Round) -> Tensor:
        n = torch.where(r.live, r.cards["n"], 0)
        first = torch.where(r.live, n / n.sum().clamp(min=1e-12), 1)
        first = first.log() if self.init == "log" else first
        return torch.where(r.st["seen"][r.ids] > 0, r.st["logits"][r.ids], first)

    def weigh(self, r: Round) -> Tensor:
        return torch.where(r.live, self.logits(r), -torch.inf).softmax(0).nan_to_num()

    def slope(self, r: Round) -> Tensor:
        """The gradient with respect to the logits, by the Gram matrix of the updates."""
        u, share, w = r.deltas.double(), r.weights.double(), r.layout.shared(r.w).double()
        ends = r.layout.shared(r.cast).double() + u
        away = 1 - cosine_similarity(ends, w[None, :])
        if self.distance == "euc":
            away = (ends - w).square().sum(1) / r.layout.shared_size
        away = away + scatter_slope(u, share)
        return torch.where(r.live, share * (away - share @ away), 0)

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        g, old = self.slope(r), {key: t[r.ids] for key, t in r.st.items()}
        m, v, t = (old[key] if self.keep else torch.zeros_like(g) for key in ("m", "v", "steps"))
        m, v, t = 0.5 * m + 0.5 * g, 0.999 * v + 0.001 * g.square(), t + 1
        step = (m / (1 - 0.5**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        new = {"logits": self.logits(r) - self.lr * step, "seen": torch.ones_like(g), "m": m, "v": v, "steps": t}
        kept = {k: t.index_copy(0, r.ids, torch.where(r.live, new[k].to(t.dtype), old[k])) for k, t in r.st.items()}
        return delta + r.layout.shared((self.gamma - 1) * (r.w + delta)).to(delta.dtype), kept
