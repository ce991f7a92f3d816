from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Descend, Step, zeros
from holdfast.vector import Record, Vector


@part("local_adam", cites="kingma2015")
class LocalAdam(Part, Descend):
    """Clients train with Adam, from zero moments in every round.  torch.optim.Adam's: decay is part of the gradient.

    m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;  step m/(1 - beta1^t)/(sqrt(v/(1 - beta2^t)) + eps).
    Kingma, Ba 2015, alg. 1, t from 1 in every round.  FedEve's recommendation setting trains so.  An entry whose
    gradient is rounding, as that of a bias before batch normalisation, moves as far as any other unless eps is larger.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    ranges = {"beta1": "in [0, 1)", "beta2": "in [0, 1)", "eps": "> 0"}
    carry = {"m": zeros, "v": zeros}
    rank = 4
    jumps = True
    excludes = {
        "momentum": "each is the client's optimiser; keep one",
        "scaffold": "scaffold reads gradients off the client's steps, and Adam's are no multiples of them; drop one",
        "cm": "cm mixes the last round's steps with gradients, and Adam's are no multiples of them; drop one",
        "nova": "nova divides by how far equal gradients go, and Adam goes as far with any; drop one",
    }

    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        t = s.count + 1
        m = self.beta1 * carry["m"] + (1 - self.beta1) * g
        v = self.beta2 * carry["v"] + (1 - self.beta2) * g.square()
        step = m / (1 - self.beta1**t) / ((v / (1 - self.beta2**t)).sqrt() + self.eps)
        return step.to(g.dtype), {"m": m, "v": v}
