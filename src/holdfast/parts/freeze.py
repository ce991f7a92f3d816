from __future__ import annotations

from typing import Literal

import torch

from holdfast.method import Method, Part, part
from holdfast.slots import Close, Frozen, Step
from holdfast.vector import Layout, Record, Vector, meant


@part("freeze", cites="oh2022")
class Freeze(Part, Frozen, Close):
    """Layers that stay as they began, the last linear one by default: the body learns around a random head.

    w_head stays w_head^0.  Oh et al. 2022 (FedBABU), whose clients fine-tune the whole model at the end (--finetune);
    UniVarFL's baseline Freeze does not.  Frozen tensors leave the vector: nobody decays, sends or counts them.
    mode 'discard', FedUV's code: clients train them, the server throws that away, and they travel.  layers: see per.
    """

    layers: str = "head"
    mode: Literal["frozen", "discard"] = "frozen"
    only = {Frozen: ("mode", "frozen"), Close: ("mode", "discard")}

    def refuses(self, method: Method) -> str | None:
        if any(p.name == "per" and p.options()["layers"] == self.layers for p in method.parts):
            return f"'freeze' and 'per' both mean layers={self.layers!r}; give each its own"
        if self.mode == "discard" and any(p.name == "speed" for p in method.parts):
            return "'speed' sends its dual of what freeze(mode='discard') throws away; drop one"
        return None

    def frozen(self, layout: Layout) -> tuple[str, ...]:
        return meant(layout, self.layers, "freeze")

    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        names = meant(s.layout, self.layers, "freeze")
        return s.layout.map(lambda name, t: torch.zeros_like(t) if name in names else t, delta), {}, {}
