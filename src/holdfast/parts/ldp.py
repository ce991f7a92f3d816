from __future__ import annotations

import torch

from holdfast import noise, privacy
from holdfast.method import Method, Part, part
from holdfast.slots import Close, Step
from holdfast.vector import Record, Vector


@part("ldp", cites="mcmahan2018")
class Ldp(Part, Close):
    """Local differential privacy: each client clips its update and adds the noise itself, so nobody has to be trusted.

    u_i <- u_i min(1, clip/||u_i||) + noise clip N(0, I).
    McMahan et al. 2018's clip and noise, on the client as in Kasiviswanathan et al. 2011.  Clients weigh equally.  Two
    clipped updates may be 2 clip apart, so the multiplier that counts is noise/2; sampling does not help.
    """

    clip: float = 1.0
    noise: float = 1.0
    ranges = {"clip": "> 0", "noise": ">= 0"}
    equal = True
    guards = frozenset(("cards", "up"))

    def refuses(self, method: Method) -> str | None:
        return privacy.objection(self, method)

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        index = torch.arange(s.layout.shared_size, device=delta.device)
        hidden = self.noise * self.clip * s.layout.arrived(noise.normal(s.key, index).to(delta.dtype))
        return privacy.clipped(delta, self.clip) + hidden, {}, {}
