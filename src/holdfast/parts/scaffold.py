from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Cast, Close, Correct, Round, Step, Update, zeros
from holdfast.vector import Record, Vector


@part("scaffold", cites="karimireddy2020")
class Scaffold(Part, Cast, Correct, Close, Update):
    """Steers local gradients by the difference of the server's and the client's control variates.

    g + c - c_i;  c_i <- c_i - c - (w - w_start)/(K lr);  c <- c + 1/N sum_S (c_i' - c_i).
    Karimireddy et al. 2020, alg. 1, option II.  K counts plain steps: beside momentum it is
    (K - b (1 - b^K)/(1 - b))/(1 - b), without which the variates come out 1/(1 - b) too large and diverge.
    """

    memory = {"c": zeros}
    state = {"c": zeros}
    uplink = {"dc": "mean"}
    observes = frozenset({Cast, Close, Update})

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        return w, st

    def correct(self, s: Step) -> Vector:
        return s.down["c"] - s.mem["c"]

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        c = s.mem["c"] - s.down["c"] - (s.w - s.start) / (s.span * s.lr)
        return delta, {"dc": c - s.mem["c"]}, {"c": c}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        return delta, {"c": r.st["c"] + r.cohort / r.clients * r.up["dc"]}
