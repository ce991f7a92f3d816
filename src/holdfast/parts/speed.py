from __future__ import annotations

from collections.abc import Callable

from holdfast.method import Method, Part, part
from holdfast.slots import Ascend, Close, Correct, Step, Transform, zeros
from holdfast.vector import Record, Vector


@part("speed", cites="sun2023speed")
class Speed(Part, Ascend, Transform, Correct, Close):
    """FedSpeed as printed: a mixed gradient, a proximal pull with a dual, and the dual sent up with the model.

    (1 - mix) g(w) + mix g(w + e) + alpha (h_i + w - w^t), e = rho g/||g||;  h_i <- h_i + (w_i - w^t);  sends w_i + h_i.
    Sun et al. 2023 (FedSpeed), alg. 1, with alpha = 1/lambda.  Its server forgets absent clients; the released code
    runs FedDyn's server instead, which is the preset fedspeed = dyn + sam.  Clients weigh equally.
    """

    rho: float = 0.1
    alpha: float = 0.1
    mix: float = 1.0
    ranges = {"rho": ">= 0", "alpha": ">= 0", "mix": "in [0, 1]"}
    memory = {"h": zeros}
    carry = {"g": zeros}
    stiffness = "alpha"
    equal = True
    excludes = {
        "dyn": "each has the dual; keep one",
        "awa": "awa compares clients' models, and speed sends them moved by their duals; take dyn + sam",
        "nova": "speed's duals sum whole updates, and nova divides them by their steps; drop one",
        "scaffold": "scaffold's variate is read off the local steps, and speed sends another update; take dyn + sam",
    }

    def refuses(self, method: Method) -> str | None:
        changed = [p.name for p in method.parts[: method.parts.index(self)] if p.fills(Transform)]
        if changed and self.mix < 1:
            return f"speed(mix={self.mix:g}) mixes raw gradients, and {changed[-1]} acts before it; write speed first"
        return None

    def ascend(self, grad: Callable[[], Vector], carry: Record, s: Step) -> tuple[Vector, Record]:
        g = grad()
        return self.rho * g / (g.norm() + 1e-7), {"g": g}

    def transform(self, g: Vector, s: Step) -> Vector:
        return (1 - self.mix) * s.carry["g"] + self.mix * g

    def correct(self, s: Step) -> Vector:
        return self.alpha * (s.mem["h"] + s.w - s.anchor)

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        h = s.mem["h"] + s.layout.shared(s.w - s.anchor)
        return delta + h, {}, {"h": h}
