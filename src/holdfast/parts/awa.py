from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from holdfast.learned import adam_step, scatter_slope
from holdfast.method import Part, part
from holdfast.slots import Round, Update, Weigh, When, each
from holdfast.vector import Record, Vector


@part("awa", cites="shi2025awa")
class Awa(Part, Weigh, Update):
    """Learns the clients' weights: one Adam step a round on logits T, weights softmax(T) over the round.

    sum_k l_k (1 - cos(w_k, w)) + sum_k l_k ||u_k - sum_j l_j u_j||; the step counts from the next round on.
    Shi et al. 2025 (FedAWA), alg. 1.  Logits belong to clients, not to places in a round as in the code, and start at
    n_k/n ('log': its logarithm), n being N times the first round's mean size.  keep: Adam's moments last.
    """

    lr: float = 1e-3
    init: Literal["fraction", "log"] = "fraction"
    distance: Literal["cos", "euc"] = "cos"
    keep: bool = False
    gamma: float = 1.0
    ranges = {"lr": ">= 0", "gamma": "> 0"}
    state = {"logits": each, "total": each, **dict.fromkeys(("m", "v", "steps"), When("keep", (True,), each))}
    jumps = True

    def logits(self, r: Round) -> Tensor:
        share = torch.where(r.live, r.cards["n"] / self.total(r), 1)
        first = share.log() if self.init == "log" else share
        return torch.where(r.st["total"][r.ids] > 0, r.st["logits"][r.ids], first)

    def total(self, r: Round) -> Tensor:
        """n, kept with every client that has come: logits of different rounds have to be comparable."""
        mean, known = torch.where(r.live, r.cards["n"], 0).sum() / r.cohort.clamp(min=1), r.st["total"].max()
        return torch.where(known > 0, known, (mean * r.clients).clamp(min=1e-12))

    def weigh(self, r: Round) -> Tensor:
        return torch.where(r.live, self.logits(r), -torch.inf).softmax(0).nan_to_num()

    def logit_slope(self, r: Round) -> Tensor:
        u, share, w = r.deltas.double(), r.weights.double(), r.layout.shared(r.w).double()
        ends = r.layout.shared(r.cast).double() + u
        squared = (ends - w).square().sum(1) / r.layout.shared_size
        turned = 1 - cosine_similarity(ends, w[None, :])
        away = (squared if self.distance == "euc" else turned) + scatter_slope(u, share)
        return torch.where(r.live, share * (away - share @ away), 0)

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        g, old = self.logit_slope(r), {key: t[r.ids] for key, t in r.st.items()}
        m, v, t = (old[key] if self.keep else torch.zeros_like(g) for key in ("m", "v", "steps"))
        step, m, v = adam_step(g, m, v, t + 1)
        new = zip(r.st, (self.logits(r) - self.lr * step, self.total(r).expand_as(g), m, v, t + 1), strict=False)
        kept = {k: r.st[k].index_copy(0, r.ids, torch.where(r.live, x.to(old[k].dtype), old[k])) for k, x in new}
        return delta + r.layout.shared((self.gamma - 1) * (r.w + delta)).to(delta.dtype), kept
