from __future__ import annotations

from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Descend, Step, zeros
from holdfast.vector import Record, Vector


@part("momentum", cites="polyak1964")
class Momentum(Part, Descend):
    """Local momentum, from zero in every round: m <- beta m + g.  torch.optim.SGD's: decay goes through the buffer."""

    beta: float = 0.9
    ranges = {"beta": "in [0, 1)"}
    neutral = {"beta": 0.0}
    carry = {"m": zeros}
    rank = 3

    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        m = self.beta * carry["m"] + g
        return m, {"m": m}

    def span(self, count: Tensor) -> Tensor:
        return (count - self.beta * (1 - self.beta**count) / (1 - self.beta)) / (1 - self.beta)
