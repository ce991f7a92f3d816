from __future__ import annotations

from torch import Tensor

from holdfast.method import Part, part
from holdfast.slots import Round, Weigh


@part("sized", cites="mcmahan2017")
class Sized(Part, Weigh):
    """Clients weigh by their samples: the default, to be named beside a part that would weigh equally.

    p_k = n_k / sum n over the clients of the round that trained.
    """

    def weigh(self, r: Round) -> Tensor:
        return r.cards["n"]
