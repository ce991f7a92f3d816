from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Ascend, Step
from holdfast.vector import Record, Vector


@part("sol", cites="lee2024")
class Sol(Part, Ascend):
    """Takes the gradient where the client forgets the global model most, so that the step keeps away from forgetting.

    e = rho g_p/||g_p||, g_p the gradient of KL(softmax(z_glob/T) || softmax(z/T)), or of ||w - w^t||^2/2 ('distance').
    Lee et al. 2024 (FedSOL), alg. 1; both models in evaluation mode.  e = 0 where ||g_p|| <= floor: at w = w^t the
    gradient is rounding noise, which the released eps of 1e-12 turns into a perturbation of length rho.
    adaptive: e times |w - w^t|, scaled to length 1 along dimension 0.  where: perturbs the head or the body alone, and
    takes its norm alone.
    """

    rho: float = 1.0
    temperature: float = 3.0
    form: Literal["kl", "distance"] = "kl"
    adaptive: bool = False
    floor: float = 1e-6
    where: Literal["all", "head", "body"] = "all"
    ranges = {"rho": ">= 0", "temperature": "> 0", "floor": ">= 0"}
    neutral = {"rho": 0.0}
    jumps = True

    def ascend(self, grad: Callable[[], Vector], carry: Record, s: Step) -> tuple[Vector, Record]:
        away = s.w - s.anchor
        g = s.grad(lambda w: self.forgetting(w, s), s.w) if self.form == "kl" else away
        if self.where != "all":
            chosen = {name: (name in s.layout.head) == (self.where == "head") for name in s.layout.names}
            g = s.layout.map(lambda name, t: t * chosen[name], g)
        length = g.norm()
        e = torch.where(length > self.floor, self.rho * g / (length + 1e-12), 0).to(g.dtype)
        if self.adaptive:
            least = 1e-6 * away.norm()  # a column that only rounding has moved has no share
            e = e * s.layout.map(lambda _, t: self.share(t.abs(), least), away)
        return e, carry

    def forgetting(self, w: Vector, s: Step) -> Tensor:
        teacher = (s.forward(s.anchor, s.sent).logits.detach() / self.temperature).log_softmax(1)
        student = (s.forward(w, s.buffers).logits / self.temperature).log_softmax(1)
        return s.batch.mean((teacher.exp() * (teacher - student)).sum(1))

    def share(self, t: Tensor, least: Tensor) -> Tensor:
        length = t.norm(dim=0, keepdim=True)
        return torch.where(length > least, t / torch.where(length > least, length, 1), 0)
