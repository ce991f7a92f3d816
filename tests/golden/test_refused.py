"""Rows of the specs that cannot be met, and what the library does instead: MS 14 (FedPer), MS 10.3 (FedLC)."""

import pytest
import torch
from rig import F64, Federation, close
from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.task import Batch, Task
from holdfast.text import parse

HAS = r"of the model; it has 0\.weight, 0\.bias, 2\.weight, 2\.bias"


@pytest.mark.parametrize(
    "layers, what",
    [
        ("nothing", "no tensor"), ("tail, rear", "no tensor"),
        ("", "every tensor, so nothing is learned together,"),  # every name begins with the empty word
    ],
)  # fmt: skip
def test_fedper_without_a_head_is_refused(layers, what):
    """MS 14 wants 'FedPer with empty head set = FedAvg': a part that would do nothing is taken for a slip."""
    task = Task.of(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), dtype=F64)
    with pytest.raises(Refused, match=rf"per\(layers='{layers}'\) means {what} {HAS}"):
        parse(f"per(layers='{layers}')").fit(task)


class Table(nn.Module):
    """Its parameters are the logits of its samples."""

    def __init__(self, logits: Tensor):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits[x]


def gradient(
    logits: list[list[float]], y: list[int], counts: list[int], engine: str, dtype=F64
) -> tuple[Tensor, float]:
    """Of fedlc's whole loss for the logits of one batch, and the loss."""

    def feed(index: Tensor, live: Tensor, *_: object) -> Batch:
        return Batch(index, torch.tensor(y)[index], live)

    task = Task.of(Table(torch.tensor(logits, dtype=dtype)), dtype=dtype)
    fed = Federation("fedlc", task, feed, [float(len(y))], engine, classes=torch.tensor([counts]))
    ups = fed.round({0: [list(range(len(y)))]}, lr=1.0)
    return task.layout.split(-ups.delta[0])["logits"], float(ups.card["loss"][0])


ENGINES = pytest.mark.parametrize("engine", ["loop", "batched"])


@ENGINES
@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("scale", [0.0, 1.0, 2e4, 1e8, 1e30])
def test_a_lacking_class_has_no_gradient_whatever_the_logits(scale, dtype, engine):
    """MS 10.3: probability 0, gradient 0. A mask of -1e4 let it back in where logits lie below."""
    logits = [[-scale, -2 * scale, 0.0], [-2 * scale, -scale, 3.0]]
    g, loss = gradient(logits, [0, 1], [5, 5, 0], engine, dtype)
    assert torch.equal(g[:, 2], torch.zeros(2, dtype=dtype))
    assert g.isfinite().all() and loss == loss
    # Margins of equal counts are equal: what is left is the cross-entropy of the two classes that the client has.
    p = torch.tensor(logits, dtype=dtype)[:, :2].softmax(1)
    expected = (p - torch.eye(2, dtype=dtype)) / 2
    close(g[:, :2].double(), expected.double(), 1e-6)


@ENGINES
def test_a_label_that_the_client_is_not_said_to_have(engine):
    """MS 10.3: 'a sample of a class with n_c = 0 must not exist'. If it does: as if it had one, and never NaN."""
    draw = torch.Generator().manual_seed(2)
    logits = (5 * torch.randn(2, 4, generator=draw, dtype=F64)).tolist()
    g, loss = gradient(logits, [2, 0], [6, 3, 0, 0], engine)
    assert g.isfinite().all() and loss < 100
    margin = torch.tensor([6.0, 3, 1, 1], dtype=F64) ** -0.25
    for row, label, there in ((0, 2, [0, 1, 2]), (1, 0, [0, 1])):  # its own row alone has the class in the softmax
        q = (torch.tensor(logits[row], dtype=F64) - margin)[there].softmax(0)
        expected = torch.zeros(4, dtype=F64)
        expected[there] = q
        expected[label] -= 1
        close(g[row], expected / 2)
