from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Round, Update
from holdfast.vector import Record, Vector


@part("server", cites="reddi2021")
class ServerRate(Part, Update):
    """A learning rate on the server: w <- w + lr u.  Reddi et al. 2021, alg. 1."""

    lr: float = 1.0
    ranges = {"lr": "> 0"}
    neutral = {"lr": 1.0}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return self.lr * delta, {}
