from __future__ import annotations

from typing import Literal

from holdfast.method import Part, part
from holdfast.slots import Round, Update, zeros
from holdfast.vector import Record, Vector


@part("avgm", cites="hsu2019")
class Avgm(Part, Update):
    """Momentum on the server.

    'dampened': v <- beta v + (1 - beta) u;  'heavy': v <- beta v + u;  w <- w + v.
    Hsu, Qi, Brown 2019 (FedAvgM) is the heavy form; most codes, FedEve's among them, run the dampened one.
    """

    beta: float = 0.9
    form: Literal["dampened", "heavy"] = "dampened"
    ranges = {"beta": "in [0, 1)"}
    neutral = {"beta": 0.0}
    state = {"v": zeros}
    excludes = {"adam": "each is the server's optimiser; keep one"}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        v = self.beta * r.st["v"] + ((1 - self.beta) * delta if self.form == "dampened" else delta)
        return v, {"v": v}
