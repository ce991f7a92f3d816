"""The deep interest network of FedEve's MovieLens-1M runs: 205,398 parameters.

Zhou et al. 2018 in the form of that code: no padding mask, no dropout, no norm, ReLU and not Dice. The history's
padding is code 0, whose vector is trained and pooled like any other.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.models.layers import code_problems

FIELDS = {"user": 15, "gender": 2, "age": 3, "occupation": 5, "zip": 15, "item": 15}  # numbers of a vector
ITEM = FIELDS["item"]


class DIN(nn.Module):
    """Who, which item, and the items before it, weighted by how they go with it: one logit a row, [B, 1]."""

    def __init__(self, codes: tuple[int, ...]):
        super().__init__()
        sizes = dict(zip(FIELDS, codes, strict=False))
        self.tables = nn.ModuleDict({name: nn.Embedding(sizes[name], width) for name, width in FIELDS.items()})
        self.attention = nn.Sequential(nn.Linear(4 * ITEM, 15), nn.ReLU(), nn.Linear(15, 1))
        self.body = nn.Sequential(nn.Linear(sum(FIELDS.values()) + ITEM, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Columns: the fields in their order, then the history, oldest first."""
        who = [table(x[:, i]) for i, table in enumerate(self.tables.values())]
        item, before = who[-1], self.tables["item"](x[:, len(FIELDS) :])
        a = item[:, None].expand_as(before)
        scores = self.attention(torch.cat([a, before, a - before, a * before], 2))
        pooled = (scores.softmax(1) * before).sum(1)
        features = self.body(torch.cat([*who, pooled], 1))
        return self.head(features), features


def din(shape: tuple[int, ...], classes: int, codes: tuple[int, ...]) -> nn.Module:
    """For clicks: fields user, gender, age, occupation, zip, item and the history, which shares the items' table."""
    problems = code_problems("din", shape, codes, len(FIELDS) + 1)
    items, longest = codes[len(FIELDS) - 1 : len(FIELDS)], max(codes[len(FIELDS) :], default=0)
    if not problems and longest > items[0]:
        problems.append(f"din's history shares the items' table of {items[0]} codes, and the history has up to "
                        f"{longest}: give items and history one size")  # fmt: skip
    if classes != 2:
        problems.append(f"din tells clicks from none, the data has {classes} classes; take another model")
    if problems:
        raise Refused(*problems)
    return DIN(codes)
