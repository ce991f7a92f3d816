from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast import noise
from holdfast.method import Part, part
from holdfast.slots import Codec, Step
from holdfast.vector import Layout, Record, Vector


@part("quantize", cites="alistarh2017")
class Quantize(Part, Codec):
    """Sends every coordinate of the update as one of a few levels, packed into bytes.

    level = floor((u/M + 1) n/2 + r), u <- M (2 level/n - 1), M = max |u|, n = max(2^bits - 2, 1).
    Alistarh et al. 2017 (QSGD, sec. 3), with the largest entry for the norm: r uniform in [0, 1) makes it unbiased;
    'nearest', r = 1/2, is not.  From 2 bits on zero is a level.  One M a tensor, or one for the whole vector.
    """

    bits: Literal[8, 4, 2, 1] = 8
    kind: Literal["stochastic", "nearest"] = "stochastic"
    per: Literal["tensor", "vector"] = "tensor"
    jumps = True

    def encode(self, delta: Vector, s: Step) -> tuple[Record, Record]:
        entries, many = s.layout.travelling(delta), max(2**self.bits - 2, 1)
        pieces = torch.split(entries, self.sizes(s.layout))
        largest = torch.stack([piece.abs().amax() for piece in pieces])
        share = entries / self.spread(torch.where(largest > 0, largest, 1), s.layout)
        index = torch.arange(len(entries), device=delta.device)
        r = noise.uniform(s.key, index) if self.kind == "stochastic" else 0.5
        levels = ((share + 1) * (many / 2) + r).floor().clamp(0, many).to(torch.uint8)
        fit = 8 // self.bits  # levels a byte
        rows = torch.nn.functional.pad(levels, (0, -len(levels) % fit)).view(-1, fit)
        return {"levels": (rows << self.shifts(rows)).sum(1, dtype=torch.uint8), "largest": largest}, {}

    def decode(self, sent: Record, layout: Layout) -> Vector:
        rows, many = sent["levels"][:, None], max(2**self.bits - 2, 1)
        levels = ((rows >> self.shifts(rows)) & (2**self.bits - 1)).view(-1)[: layout.shared_size]
        scale = self.spread(sent["largest"], layout)
        return layout.arrived(scale * (levels.to(scale.dtype) * (2 / many) - 1))

    def sizes(self, layout: Layout) -> list[int]:
        return list(layout.shared_sizes) if self.per == "tensor" else [layout.shared_size]

    def spread(self, scales: Tensor, layout: Layout) -> Tensor:
        return torch.cat([scale.expand(n) for scale, n in zip(scales.unbind(), self.sizes(layout), strict=True)])

    def shifts(self, like: Tensor) -> Tensor:
        return torch.arange(0, 8, self.bits, dtype=torch.uint8, device=like.device)
