from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.func import grad

from holdfast.learned import descended, swa_rates
from holdfast.method import Method, Part, part
from holdfast.slots import Merge, Round, Update, Weigh
from holdfast.vector import Record, Vector


@part("law", cites="li2023law")
class Law(Part, Update):
    """Learns the clients' weights and a shrinking factor on labelled samples that the server holds.

    w <- gamma sum_k l_k w_k, l = softmax(x), gamma = exp(g), x and g by Adam (0.5, 0.999) on the server's samples, from
    x_k = log n_k/sum n and g = 0 in every round, one full batch an epoch, lr halved every 20.  Li et al. 2023 (FedLAW),
    alg. 1.  form 'quad': l ~ x^2, gamma = g^2.  --proxy takes the samples out of the test set.  As released:
    'quad' starts from equal weights (start); swa: first l, averaged from the seventh epoch on, then gamma, half each.
    """

    lr: float = 0.01
    epochs: int = 20
    form: Literal["exp", "quad"] = "exp"
    start: Literal["sizes", "uniform"] = "sizes"
    swa: bool = False
    ranges = {"lr": ">= 0", "epochs": ">= 0"}
    jumps = True

    def refuses(self, method: Method) -> str | None:
        rivals = [p.name for p in method.parts if isinstance(p, Weigh | Merge)]
        rivals += [p.name for p in method.parts
                   if p is not self and isinstance(p, Update) and Update not in p.observes]  # fmt: skip
        return f"'law' makes the server's step itself, and so does '{rivals[0]}'; keep one" if rivals else None

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        n = torch.where(r.live, r.cards["n"] if self.start == "sizes" else torch.ones_like(r.cards["n"]), 0)
        size = torch.where(r.live, n / n.sum().clamp(min=1e-12), 1)
        x = size.log() if self.form == "exp" else size.sqrt()
        x = torch.cat((x, torch.zeros_like(x[:1]) if self.form == "exp" else torch.ones_like(x[:1])))
        slope = grad(lambda x: r.proxy_loss(r.w + self.moved(x, r)))
        epochs, factor = self.epochs, torch.zeros_like(x)
        if self.swa:
            epochs, factor[-1] = epochs // 2, 1
            later = descended(lambda x: slope(x) * (1 - factor), x, swa_rates(self.lr, epochs))[6:]
            x, slope = (torch.stack(later).mean(0) if later else x), lambda x, g=slope: g(x) * factor
        rates = [self.lr * 0.5 ** (t // 20) for t in range(epochs)]
        return self.moved([x, *descended(slope, x, rates)][-1], r), {}

    def moved(self, x: Tensor, r: Round) -> Vector:
        raw, g = x[:-1], x[-1]
        raw = raw.exp() if self.form == "exp" else raw.square()
        share = torch.where(r.live, raw, 0)
        u = share / share.sum() @ r.deltas
        gamma = g.exp() if self.form == "exp" else g.square()
        return u + r.layout.shared((gamma - 1) * (r.w + u))
