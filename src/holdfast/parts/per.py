from __future__ import annotations

from holdfast.method import Part, part
from holdfast.slots import Private
from holdfast.vector import Layout, meant


@part("per", cites="arivazhagan2019")
class Per(Part, Private):
    """Personal layers: trained with the rest, kept by their client, never sent.

    Client i trains (w_shared, v_i);  w_shared <- w_shared + sum p_k u_k,shared;  v_i <- its own end.
    Arivazhagan et al. 2019 (FedPer).
    layers: 'head', the last linear layer, or beginnings of parameter names, separated by commas.
    """

    layers: str = "head"

    def private(self, layout: Layout) -> tuple[str, ...]:
        return meant(layout, self.layers, "per")
