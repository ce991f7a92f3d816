from __future__ import annotations

import torch
from torch.nn.functional import cosine_similarity

from holdfast.method import Part, part
from holdfast.slots import Close, Loss, Step, same, scalar
from holdfast.vector import Record, Vector


@part("moon", cites="li2021")
class Moon(Part, Loss, Close):
    """Model-contrastive loss: features like the global model's, unlike the client's own last model's.

    mu mean -log[e^(cos(z, z_glob)/tau) / (e^(cos(z, z_glob)/tau) + e^(cos(z, z_prev)/tau))].
    Li, He, Song 2021, eq. 3.  Zero at a client's first participation, which has no last model.
    """

    mu: float = 1.0
    tau: float = 0.5
    ranges = {"mu": ">= 0", "tau": "> 0"}
    neutral = {"mu": 0.0}
    memory = {"w": same, "seen": scalar(0)}
    observes = frozenset({Close})

    def loss(self, s: Step) -> torch.Tensor:
        z = s.out.hidden("moon").flatten(1)
        near, far = (
            cosine_similarity(z, s.forward(w).hidden("moon").flatten(1).detach()) / self.tau
            for w in (s.anchor, s.mem["w"])
        )
        return self.mu * s.mem["seen"] * s.batch.mean(torch.logaddexp(near, far) - near)

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"w": s.w, "seen": torch.ones_like(s.mem["seen"])}
