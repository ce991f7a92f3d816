from __future__ import annotations

import torch
from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Round, Weigh


@part("uniform", cites="mcmahan2017")
class Uniform(Part, Weigh):
    """Every client of the round that trained weighs the same: p_k = 1/m instead of n_k / sum n."""

    def weigh(self, r: Round) -> Tensor:
        return torch.ones_like(r.cards["n"])
