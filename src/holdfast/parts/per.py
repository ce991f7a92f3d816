from __future__ import annotations

from holdfast.errors import Refused
from holdfast.method import Part, part
from holdfast.slots import Private
from holdfast.vector import Layout


@part("per", cites="arivazhagan2019")
class Per(Part, Private):
    """Personal layers: trained with the rest, kept by their client, never sent.  Arivazhagan et al. 2019 (FedPer).

    layers: 'head', the last linear layer, or beginnings of parameter names, separated by commas.
    """

    layers: str = "head"

    def private(self, layout: Layout) -> tuple[str, ...]:
        starts = tuple(part.strip() for part in self.layers.split(","))
        names = layout.head if self.layers == "head" else tuple(n for n in layout.names if n.startswith(starts))
        if not names:
            raise Refused(
                f"per(layers={self.layers!r}): no tensor of the model is meant; it has {', '.join(layout.names)}"
            )
        if set(names) == set(layout.names):
            raise Refused(
                f"per(layers={self.layers!r}) keeps every tensor of the model private, so nothing is learned together"
            )
        return names
