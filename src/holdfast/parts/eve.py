from __future__ import annotations

from typing import Literal

import torch

from holdfast.method import Part, part
from holdfast.slots import Cast, Close, Round, Step, Update, scalar, zeros
from holdfast.vector import Record, Vector


@part("eve", cites="shen2025")
class Eve(Part, Cast, Close, Update):
    """A predicting server: sends a look-ahead point and corrects its momentum by what comes back, as a Kalman filter.

    b = w + m;  Q = ||m - u||^2/(K d);  R = sum_k ||u_k - u||^2/(K^2 d);  v <- v + Q;  G = v/(v + R);
    m <- m + G (u - m);  w <- w + m;  v <- (1 - G) v.  Shen et al. 2025 (FedEve), eq. 13-16; u = mean of updates from b.
    R comes from one number a client, ||u_k||^2.  Beside gh, u is harmonised and R that of the raw updates.  G = 1 where
    v + R = 0.  q_mode 'energy': Q = ||u||^2/(K d), r_mean 'uniform' and count_empty are the public code's.
    predict (eq. 5): 'none' is FedAvg; 'last' looks ahead along the last u.  q, r, gain of a round are shown.
    """

    q_mode: Literal["innovation", "energy"] = "innovation"
    r_mean: Literal["weighted", "uniform"] = "weighted"
    count_empty: bool = False
    predict: Literal["momentum", "none", "last"] = "momentum"
    state = {"m": zeros, "v": scalar(0), "q": scalar(0), "r": scalar(0), "gain": scalar(0)}
    uplink = {"sq": "mean"}
    shows = ("q", "r", "gain")
    observes = frozenset({Close})
    excludes = dict.fromkeys(("avgm", "adam", "server"), "each is the server's optimiser; keep one")

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        return (w if self.predict == "none" else w + st["m"]), {}

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {"sq": delta.double().square().sum().to(delta.dtype)}, {}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        many = torch.full_like(r.cohort, len(r.ids)) if self.count_empty else r.cohort.clamp(min=1)
        m, size = r.st["m"], many * r.layout.shared_size
        mean = r.mean.double() * (r.cohort / many)
        centre = r.weighted.double() if self.r_mean == "weighted" else mean
        # sum_k ||u_k - centre||^2 from sums over clients, so that no single update is needed
        spread = r.up["sq"].double() * r.cohort - many * (2 * (mean @ centre) - centre @ centre)
        innovation = m - delta if self.q_mode == "innovation" else delta
        q = (innovation.double().square().sum() / size).to(delta.dtype)
        scatter = (spread.clamp(min=0) / (size * many)).to(delta.dtype)
        v = r.st["v"] + q
        gain = torch.where(v + scatter > 0, v / torch.where(v + scatter > 0, v + scatter, 1), 1)
        step = delta if self.predict == "none" else m + gain * (delta - m)
        kept = {"m": delta if self.predict == "last" else step, "v": (1 - gain) * v}
        return step, {**kept, "q": q, "r": scatter, "gain": gain}
