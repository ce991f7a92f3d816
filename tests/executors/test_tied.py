"""A weight that stands under two names is one weight: it is trained once and seen under both names."""

import torch
from torch import nn

from holdfast.task import Batch, Task


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def test_tied_weights_are_one():
    task = Task.of(Tied(), dtype=torch.float64)
    assert task.layout.names == ("first.weight",)
    w, x = torch.arange(16, dtype=torch.float64) / 10, torch.ones(1, 4, dtype=torch.float64)
    vector = torch.cat([w, torch.zeros(task.layout.length - 16, dtype=torch.float64)])
    batch = Batch(x, torch.zeros(1, dtype=torch.int64), torch.ones(1, dtype=torch.bool))
    weight = w.view(4, 4)
    wanted = torch.relu(x @ weight.T) @ weight.T  # by hand
    assert torch.equal(task.forward(vector, {}, batch).logits, wanted)
