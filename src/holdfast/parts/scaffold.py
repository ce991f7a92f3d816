from __future__ import annotations

from typing import Literal

from holdfast.learned import relative_size
from holdfast.method import Part, part
from holdfast.slots import Cast, Close, Correct, Descend, Round, Step, Update, When, scalar, zeros
from holdfast.vector import Record, Vector


@part("scaffold", cites="karimireddy2020")
class Scaffold(Part, Cast, Correct, Descend, Close, Update):
    """Steers local gradients by the difference of the server's and the client's control variates.

    g + c - c_i;  c_i <- c_i - c - (w - w_start)/(K lr);  c <- c + 1/N sum_S (c_i' - c_i).
    Karimireddy et al. 2020, alg. 1, option II.  K counts plain steps: beside momentum it is
    (K - b (1 - b^K)/(1 - b))/(1 - b), without which the variates come out 1/(1 - b) too large and diverge.
    option 'I': c_i <- the client's gradient at w^t, gathered over the batches it visits, at one more pass a step.
    scale: of c - c_i; FedLESAM-S as released has .1.  mean_n, samples of all clients over their number, turns on what
    two codes do under unequal sizes, s_i = n_i/mean_n: c/s_i in the step and s_i (c_i' - c_i) up.  code: FedDC's reads
    c_i' off with c/s_i, the one of FedDyn's repository with c.  Both divide by the first lr, which is not copied.
    """

    option: Literal["II", "I"] = "II"
    scale: float = 1.0
    mean_n: float = 0.0
    code: Literal["feddc", "feddyn"] = "feddc"
    ranges = {"scale": ">= 0", "mean_n": ">= 0"}
    only = {Descend: ("option", "I")}
    memory = {"c": zeros}
    state = {"c": zeros}
    carry = {"g": When("option", ("I",), zeros), "rows": When("option", ("I",), scalar(0))}
    uplink = {"dc": "mean"}
    observes = frozenset({Cast, Close, Update})

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        return w, st

    def correct(self, s: Step) -> Vector:
        return self.scale * (s.down["c"] / relative_size(s.card["n"], self.mean_n) - s.mem["c"])

    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        rows = s.batch.live.sum()
        at = s.layout.shared(s.grad(s.data_loss, s.anchor))
        return g, {"g": carry["g"] + rows * at, "rows": carry["rows"] + rows}

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        size = relative_size(s.card["n"], self.mean_n)
        if self.option == "II":
            sent = s.down["c"] / size if self.code == "feddc" else s.down["c"]
            c = s.mem["c"] - sent - (s.w - s.start) / (s.span * s.lr)
        else:
            c = s.carry["g"] / s.carry["rows"].clamp(min=1)
        return delta, {"dc": size * (c - s.mem["c"])}, {"c": c}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return delta, {"c": r.st["c"] + r.cohort / r.clients * r.up["dc"]}
