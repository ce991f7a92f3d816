from __future__ import annotations

import torch

from holdfast.method import Part, part
from holdfast.slots import Close, Open, Step, same, scalar
from holdfast.vector import Record, Vector


@part("init", cites="sun2023init")
class Init(Part, Open, Close):
    """Relaxed initialisation: a client starts a little away from where it last ended.

    w_start = w^t + beta (w^t - w_i), w_i its last local model; w^t at the first participation.
    Sun, Shen, Tao 2023 (FedInit), alg. 1.  The update is measured from w^t.
    """

    beta: float = 0.1
    ranges = {"beta": ">= 0"}
    neutral = {"beta": 0.0}
    memory = {"w": same, "seen": scalar(0)}
    observes = frozenset({Close})

    def open(self, s: Step) -> Vector:
        return s.anchor + self.beta * s.mem["seen"] * (s.anchor - s.mem["w"])

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"w": s.w, "seen": torch.ones_like(s.mem["seen"])}
