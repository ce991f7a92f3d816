from __future__ import annotations

from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Round, Weigh


@part("sized", cites="mcmahan2017")
class Sized(Part, Weigh):
    """Clients weigh by their samples, n_k / sum n: the default, to be named beside a part that would weigh equally."""

    def weigh(self, r: Round) -> Tensor:
        return r.cards["n"]
