from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

from holdfast.method import Part, part
from holdfast.slots import Ascend, Cast, Close, Round, Step, Update, When, same, scalar
from holdfast.vector import Record, Vector


@part("lesam", cites="fan2024")
class Lesam(Part, Cast, Ascend, Close, Update):
    """SAM without a second pass: the perturbation points back along the global path, and is constant over the round.

    e = rho (w_old - w^t)/||w_old - w^t||, 0 at the first participation; Fan et al. 2024, alg. 1.
    mode 'paper': w_old is the model that the client received when it last took part; 'last_update': w^{t-1} for all;
    'released', the public code: w^{t-1}, and tensor j is shifted by the single entry v_j of v = w_old - w^t, over
    sum_j |v_j| of as many entries as there are tensors.
    """

    rho: float = 0.1
    mode: Literal["paper", "last_update", "released"] = "paper"
    ranges = {"rho": ">= 0"}
    neutral = {"rho": 0.0}
    memory = {"w": When("mode", ("paper",), same), "seen": When("mode", ("paper",), scalar(0))}
    state = {"w": When("mode", ("last_update", "released"), same)}
    observes = frozenset({Cast, Close, Update})

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        return w, {"back": st["w"] - w} if st else {}

    def ascend(self, grad: Callable[[], Vector], carry: Record, s: Step) -> tuple[Vector, Record]:
        back = s.layout.shared(s.down["back"] if s.down else s.mem["seen"] * (s.mem["w"] - s.anchor))
        if self.mode == "released":
            norm = back[: len(s.layout.names)].abs().sum()
            back = s.layout.map(lambda name, t: back[s.layout.names.index(name)].expand(t.shape), back)
        else:
            norm = back.norm()
        return self.rho * back / torch.where(norm > 0, norm, 1), carry

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"w": s.anchor, "seen": torch.ones_like(s.mem["seen"])} if s.mem else {}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return delta, {"w": r.w} if r.st else {}
