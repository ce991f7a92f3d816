from __future__ import annotations

from typing import Literal

import torch

from holdfast.method import Part, part
from holdfast.slots import Cast, Round, Update, scalar, zeros
from holdfast.vector import Record, Vector


@part("eve", cites="shen2025")
class Eve(Part, Cast, Update):
    """A predicting server: sends a look-ahead point and corrects its momentum by what comes back, as a Kalman filter.

    b = w + m;  Q = ||m - u||^2/(K d);  R = sum_k ||u_k - u||^2/(K^2 d);  v <- v + Q;  G = v/(v + R);
    m <- m + G (u - m);  w <- w + m;  v <- (1 - G) v.  Shen et al. 2025 (FedEve), eq. 13-16; u = mean of updates from b.
    q_mode 'energy': Q = ||u||^2/(K d), as the public code has it.  r_mean: around which mean R is taken.
    Beside gh, u is the harmonised mean and R that of the raw updates.  G = 1 where v + R = 0.
    """

    q_mode: Literal["innovation", "energy"] = "innovation"
    r_mean: Literal["weighted", "uniform"] = "weighted"
    state = {"m": zeros, "v": scalar(0)}
    excludes = dict.fromkeys(("avgm", "adam", "server"), "each is the server's optimiser; keep one")

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        return w + st["m"], {}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        m, size = r.st["m"], r.cohort.clamp(min=1) * r.layout.shared_size
        mean = r.mean.double()
        centre = r.weighted.double() if self.r_mean == "weighted" else mean
        # sum_k ||u_k - centre||^2 from sums over clients, so that no single update is needed
        spread = r.sqnorm.sum() - r.cohort * (2 * (mean @ centre) - centre @ centre)
        innovation = m - delta if self.q_mode == "innovation" else delta
        v = r.st["v"] + (innovation.double().square().sum() / size).to(delta.dtype)
        scatter = (spread.clamp(min=0) / (size * r.cohort.clamp(min=1))).to(delta.dtype)
        gain = torch.where(v + scatter > 0, v / torch.where(v + scatter > 0, v + scatter, 1), 1)
        m = m + gain * (delta - m)
        return m, {"m": m, "v": (1 - gain) * v}
