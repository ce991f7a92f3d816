from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from holdfast.method import Part, part
from holdfast.slots import Ascend, Cast, Close, Round, Step, Update, remembered, zeros
from holdfast.vector import Record, Vector


@part("smoo", cites="sun2023smoo")
class Smoo(Part, Cast, Ascend, Close, Update):
    """SAM whose perturbations are drawn together over clients by duals mu_i and a global perturbation s.

    At every local step v = g - mu_i - s, e = rho v/(||v|| + eps), mu_i <- mu_i + e - s; then s = rho unit(mean_S s_i).
    Sun et al. 2023 (FedSMOO), alg. 1; the method is `dyn + smoo`.
    form 'paper': s_i = mu_i - e of the last step; 'code': s_i = mu_i, as the released code has it.
    """

    rho: float = 0.1
    form: Literal["paper", "code"] = "paper"
    ranges = {"rho": ">= 0"}
    neutral = {"rho": 0.0}
    memory = {"mu": zeros}
    state = {"s": zeros}
    carry = {"mu": remembered("mu"), "e": zeros}
    uplink = {"s": "mean"}
    jumps = True
    observes = frozenset({Cast, Close, Update})

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        return w, st

    def ascend(self, grad: Callable[[], Vector], carry: Record, s: Step) -> tuple[Vector, Record]:
        v = grad() - carry["mu"] - s.down["s"]
        e = self.rho * v / (v.norm() + 1e-7)
        return e, {"mu": carry["mu"] + e - s.down["s"], "e": e}

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        mu = s.carry["mu"]
        return delta, {"s": mu - s.carry["e"] if self.form == "paper" else mu}, {"mu": mu}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return delta, {"s": self.rho * r.up["s"] / (r.up["s"].norm() + 1e-7)}
