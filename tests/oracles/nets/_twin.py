"""The library on the oracles' network and clients, and on a model whose logits and features are given by hand."""

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import _net
import numpy as np
import torch
from rig import Federation  # pyright: ignore[reportMissingImports]
from torch import Tensor, nn

from holdfast.task import Batch, Task

F64 = torch.float64
X, Y = torch.tensor(_net.X), torch.tensor(_net.Y)
HEAD = ("2.weight", "2.bias")


@cache
def load(oracle: str) -> Any:
    """An oracle by path: other folders have modules of the same names."""
    spec = importlib.util.spec_from_file_location(f"net_{oracle}", Path(__file__).with_name(f"{oracle}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def expected(oracle: str, **options: Any) -> np.ndarray:
    return load(oracle).trajectory(**options)


def network() -> nn.Sequential:
    """torch's network with the oracles' first weights."""
    net = nn.Sequential(nn.Linear(_net.WIDE, _net.HIDDEN), nn.Tanh(), nn.Linear(_net.HIDDEN, _net.CLASSES)).double()
    with torch.no_grad():
        for p, piece in zip(net.parameters(), _net.split(_net.START), strict=True):
            p.copy_(torch.tensor(piece))
    object.__setattr__(net, "last_stage", ("0", "1"))  # FedAlign wants to know
    return net


def feed(index: Tensor, live: Tensor, *_: object) -> Batch:
    return Batch(X[index], Y[index], live)


def federation(
    method: str, engine: str = "loop", classes: Any = _net.COUNTS, net: nn.Module | None = None
) -> Federation:
    """Two lanes: cohorts of three and four clients take several chunks."""
    task = Task.of(net or network(), dtype=F64)
    return Federation(method, task, feed, _net.SIZES.tolist(), engine, lanes=2, classes=classes)


def advance(fed: Federation, t: int) -> np.ndarray:
    """One round; the whole model afterwards, with what is no longer in the vector as it began."""
    fed.round({i: _net.batches(i, t) for i in _net.COMPANY[t]}, _net.RATES[t])
    return whole(fed)


def whole(fed: Federation) -> np.ndarray:
    got = {name: p.detach() for name, p in network().named_parameters()}
    assert fed.task.layout.names == tuple(name for name in got if name in fed.task.layout.names)
    return torch.cat([t.reshape(-1) for t in {**got, **fed.task.layout.split(fed.server.w)}.values()]).numpy()


def path(method: str, engine: str = "loop", **more: Any) -> np.ndarray:
    fed = federation(method, engine, **more)
    return np.array([advance(fed, t) for t in range(len(_net.COMPANY))])


class Table(nn.Module):
    """Its parameters are the logits and features of the samples 0 .. n-1."""

    def __init__(self, logits: Tensor, features: Tensor):
        super().__init__()
        self.logits, self.features = nn.Parameter(logits), nn.Parameter(features)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.logits[x], self.features[x]


def added(
    method: str, logits: Any, features: Any = None, y: Any = None, classes: Any = None, engine: str = "loop"
) -> tuple[float, np.ndarray, np.ndarray]:
    """What a method adds to the cross-entropy of one batch, and the gradients for logits and features of all of it."""
    s = torch.as_tensor(logits, dtype=F64)
    f = torch.ones(len(s), 2) if features is None else torch.as_tensor(features)
    labels = s.argmax(1) if y is None else torch.as_tensor(y)
    if classes is None:
        classes = torch.bincount(labels, minlength=s.shape[1])

    def run(text: str) -> tuple[float, dict[str, Tensor]]:
        def table(index: Tensor, live: Tensor, *_: object) -> Batch:
            return Batch(index, labels[index], live)

        task = Task.of(Table(s, f.to(F64)), dtype=F64)
        fed = Federation(text, task, table, [float(len(s))], engine, classes=torch.as_tensor(classes)[None])
        ups = fed.round({0: [list(range(len(s)))]}, lr=1.0)
        return float(ups.card["loss"][0]), task.layout.split(-ups.delta[0])

    (loss, g), (base, g0) = run(method), run("fedavg")
    return loss - base, g["logits"].numpy(), (g["features"] - g0["features"]).numpy()
