from __future__ import annotations

import torch
from torch.nn.functional import cosine_similarity

from holdfast.method import Part, part
from holdfast.slots import Close, Loss, Step, same, same_buffers, scalar
from holdfast.vector import Record, Vector, unpacked


@part("moon", cites="li2021")
class Moon(Part, Loss, Close):
    """Model-contrastive loss: features like the global model's, unlike the client's own last model's.

    mu mean -log[e^(cos(z, z_glob)/tau) / (e^(cos(z, z_glob)/tau) + e^(cos(z, z_prev)/tau))].
    Li, He, Song 2021, eq. 3.  Both teachers in evaluation mode.  Zero at a first participation.
    """

    mu: float = 1.0
    tau: float = 0.5
    ranges = {"mu": ">= 0", "tau": "> 0"}
    neutral = {"mu": 0.0}
    memory = {"w": same, "buffers": same_buffers, "seen": scalar(0)}
    observes = frozenset({Close})

    def loss(self, s: Step) -> torch.Tensor:
        z = s.out.hidden("moon").flatten(1)
        teachers = (s.anchor, s.sent), (s.mem["w"], unpacked(s.mem["buffers"], s.buffers))
        near, far = (
            cosine_similarity(z, s.forward(*teacher).hidden("moon").flatten(1).detach()) / self.tau
            for teacher in teachers
        )
        return self.mu * s.mem["seen"] * s.batch.mean(torch.logaddexp(near, far) - near)

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        seen = torch.ones_like(s.mem["seen"])
        return delta, {}, {"w": s.w, "buffers": same_buffers(s), "seen": seen}
