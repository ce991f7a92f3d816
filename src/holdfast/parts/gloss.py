from __future__ import annotations

from typing import Literal

import torch

from holdfast.method import Part, part
from holdfast.slots import Cast, Close, Correct, Round, Step, Update, scalar, zeros
from holdfast.vector import Record, Vector


@part("gloss", cites="caldarola2025")
class Gloss(Part, Cast, Correct, Close, Update):
    """SAM of the whole federation: clients train around a point shifted along the last pseudo-gradient, with duals.

    Sends w~ = w + rho_g P/||P||;  g - sigma_k + (w - w~)/beta;  sigma_k <- sigma_k - (w_k - w~)/beta;
    P <- -mean u;  sigma <- sigma - sum_S u_k/(beta N);  w <- w + mean u - beta sigma, from the w that was not shifted.
    Caldarola et al. 2025 (FedGloSS), alg. 1; beside sam, the preset fedgloss.  form 'code' divides the step of sigma by
    |S| once more, as released.  rho_g rises linearly from rho0 over `warm` rounds; schedule 'released', a slip: during
    them it is rho_l, sam's rho, + (rho_g - rho0)/warm.  The released clients' radius rises too, and sam's does not.
    """

    rho_g: float = 0.1
    beta: float = 10.0
    form: Literal["admm", "code"] = "admm"
    rho0: float = 0.001
    warm: int = 0
    schedule: Literal["linear", "released"] = "linear"
    rho_l: float = 0.1
    ranges = {"rho_g": ">= 0", "beta": "> 0", "rho0": ">= 0", "rho_l": ">= 0"}
    memory = {"sigma": zeros}
    state = {"sigma": zeros, "p": zeros, "t": scalar(0)}
    stiffness = "pull"
    observes = frozenset({Close})
    excludes = {"nova": "gloss's duals sum whole updates, and nova divides them by their steps; drop one"}
    excludes |= dict.fromkeys(("dyn", "speed"), "each has the dual; keep one")

    @property
    def pull(self) -> float:
        return 1 / self.beta

    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        t, length, rise = st["t"], st["p"].norm(), (self.rho_g - self.rho0) / max(self.warm, 1)
        slip = self.schedule == "released"
        early = 0 * t + self.rho_l + rise if slip else self.rho0 + t * rise
        rho = torch.where(t < self.warm + slip, early, self.rho_g)
        return w + rho * st["p"] / torch.where(length > 0, length, 1), {}

    def correct(self, s: Step) -> Vector:
        return self.pull * (s.w - s.anchor) - s.mem["sigma"]

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        return delta, {}, {"sigma": s.mem["sigma"] - self.pull * delta}

    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        step = self.pull * r.mean * r.cohort / r.clients
        sigma = r.st["sigma"] - (step / r.cohort.clamp(min=1) if self.form == "code" else step)
        return delta - self.beta * sigma, {"sigma": sigma, "p": -r.weighted, "t": r.st["t"] + 1}
