"""Classifier calibration with virtual representations, for a run that has ended.

mu_c = sum_k N_ck mu_ck / N_c;  S_c = (sum_k (N_ck - 1) S_ck + sum_k N_ck mu_ck mu_ck^T - N_c mu_c mu_c^T)/(N_c - 1).
Luo et al. 2021 (CCVR).  Every client tells, for every class, how many features it has, their mean and their covariance;
the server pools these, draws features from a Gaussian a class, and trains the last linear layer on them.  The body of
the model stays as it is.  A class of fewer than two samples has no covariance and is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.data.plan import generator
from holdfast.errors import Refused
from holdfast.options import positive, whole
from holdfast.personal import scored
from holdfast.simulate import Federation, State
from holdfast.vector import Vector

ROWS = 1000  # samples whose features are computed at once


@dataclass(frozen=True)
class Options:
    """The paper leaves these open; the defaults are ours. Training starts from the run's own last layer."""

    samples: int = 1000  # virtual features of a class
    epochs: int = 10  # over all of them
    lr: float = 0.01  # of plain SGD
    batch: int = 64

    def __post_init__(self) -> None:
        wrong = [
            f"ccvr: {f.name}={getattr(self, f.name)!r} must be a whole number of at least 1"
            for f in fields(self)
            if f.name != "lr" and not whole(getattr(self, f.name), 1)
        ]
        if not positive(self.lr):
            wrong.append(f"ccvr: lr={self.lr!r} must be a number above 0")
        if wrong:
            raise Refused(*wrong)


class Moments(NamedTuple):
    """Of the features of every class, in float64."""

    count: Tensor  # [C]
    mean: Tensor  # [C, D]
    covariance: Tensor  # [C, D, D], unbiased; zero below two samples


class Calibrated(NamedTuple):
    w: Vector
    before: float  # accuracies on the test data
    after: float
    counts: list[int]
    skipped: list[int]  # classes with fewer than two samples, for which there is no covariance


def moments(features: Tensor, y: Tensor, classes: int) -> Moments:
    """What one client tells."""
    x, chosen = features.double(), torch.nn.functional.one_hot(y, classes).double()
    count = chosen.sum(0)
    mean = chosen.T @ x / count.clamp(min=1)[:, None]
    covariance = x.new_zeros(classes, x.shape[1], x.shape[1])
    for label in torch.nonzero(count > 1).flatten().tolist():
        centred = x[y == label] - mean[label]
        covariance[label] = centred.T @ centred / (count[label] - 1)
    return Moments(count, mean, covariance)


def pooled(told: Iterable[Moments]) -> Moments:
    """What the server makes of it: the moments of all clients' features together, without a look at any.

    mu_c = sum_k N_ck mu_ck / N_c;
    S_c = sum_k (N_ck - 1)/(N_c - 1) S_ck + sum_k N_ck/(N_c - 1) mu_ck mu_ck^T - N_c/(N_c - 1) mu_c mu_c^T.
    """
    count, first, second = torch.zeros(()), torch.zeros(()), torch.zeros(())
    for m in told:  # sums over clients, so that the memory needed does not grow with their number
        weighted = m.count[:, None] * m.mean
        count, first = m.count + count, weighted + first
        outer = weighted[:, :, None] * m.mean[:, None, :]
        second = (m.count - 1).clamp(min=0)[:, None, None] * m.covariance + outer + second
    mean = first / count.clamp(min=1)[:, None]
    spread = second - first[:, :, None] * mean[:, None, :]
    known = (count > 1)[:, None, None]
    return Moments(count, mean, torch.where(known, spread / (count - 1).clamp(min=1)[:, None, None], 0))


def virtual(m: Moments, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """So many features of every class that has two samples or more, and their classes.

    The root of a covariance is taken from its eigenvalues, those below zero by rounding being zero: a covariance of few
    samples is singular, and needs no epsilon on its diagonal this way.
    """
    known = torch.nonzero(m.count > 1).flatten().tolist()
    found: list[Tensor] = []
    for label in known:
        values, vectors = torch.linalg.eigh(m.covariance[label])
        draw = generator(seed, "ccvr", client=label).standard_normal((samples, len(values)))
        noise = torch.from_numpy(draw).to(m.mean.device)
        found.append(m.mean[label] + noise @ (vectors * values.clamp(min=0).sqrt()).T)
    y = torch.tensor(known, device=m.mean.device).repeat_interleave(samples)
    return torch.cat(found), y


def retrained(head: list[Tensor], x: Tensor, y: Tensor, options: Options, seed: int) -> list[Tensor]:
    """The last layer (weight, and bias if it has one) after SGD on the cross-entropy of these features."""
    trained = [t.clone().requires_grad_() for t in head]
    optimiser = torch.optim.SGD(trained, options.lr)
    for epoch in range(options.epochs):
        order = torch.from_numpy(generator(seed, "ccvr order", epoch).permutation(len(y))).to(y.device)
        for rows in order.split(options.batch):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(torch.nn.functional.linear(x[rows], *trained), y[rows]).backward()
            optimiser.step()
    return [t.detach() for t in trained]


def calibrated(fed: Federation, state: State, options: Options) -> Calibrated:
    """The server's model with its last layer calibrated; `state` stays as it is."""
    if fed.data.source:
        raise Refused(
            f"{fed.data.name} makes samples when their client comes, and ccvr asks every client; take other data"
        )
    names, w = head_names(fed), state.server.w
    every = pooled(moments(x, y, fed.data.classes) for x, y in told(fed, state, names))
    counts = [int(n) for n in every.count.tolist()]
    if max(counts) < 2:
        raise Refused("no class has two samples, so there is no covariance to draw features from; take more data")
    x, y = virtual(every, options.samples, fed.seed)
    tensors = fed.task.layout.split(w)
    new = retrained([tensors[name] for name in names], x.to(w.dtype), y, options, fed.seed)
    after = fed.task.layout.join({**tensors, **dict(zip(names, new, strict=True))})
    skipped = [label for label, n in enumerate(counts) if n < 2]
    return Calibrated(after, accuracy(fed, state, w), accuracy(fed, state, after), counts, skipped)


def accuracy(fed: Federation, state: State, w: Vector) -> float:
    return float(scored(fed, w, state.server.buffers, fed.data.test_x, fed.data.test_y).right.double().mean())


def told(fed: Federation, state: State, names: list[str]) -> Iterator[tuple[Tensor, Tensor]]:
    """Every client's features in evaluation mode, and their classes."""
    for samples in fed.clients:
        if len(samples):
            index = torch.from_numpy(samples)
            pieces = [features(fed, state, rows, names) for rows in index.split(ROWS)]
            yield torch.cat(pieces), fed.data.y[index.to(fed.data.y.device)]


@torch.no_grad()
def features(fed: Federation, state: State, rows: Tensor, names: list[str]) -> Tensor:
    """The inputs of the last linear layer; that its outputs are the logits is checked, not taken for granted."""
    out = fed.task.forward(
        state.server.w, state.server.buffers, fed.plain(rows, torch.ones_like(rows, dtype=torch.bool))
    )
    tensors, x = fed.task.layout.split(state.server.w), out.features
    head = [tensors[name] for name in names]
    fits = x is not None and x.dim() == 2 and x.shape[1] == head[0].shape[1]
    if x is None or not fits or not torch.allclose(torch.nn.functional.linear(x, *head), out.logits, 1e-3, 1e-3):
        raise Refused(
            f"the logits of this model are not its last linear layer ({names[0]}) of its features, so there is no "
            "layer to calibrate; end the model in a linear layer, or return (logits, features)"
        )
    return x


def head_names(fed: Federation) -> list[str]:
    """Weight and bias of the last linear layer, where it is the server's and is trained."""
    layout, free = fed.task.layout, fed.whole.layout if fed.whole else fed.task.layout
    shapes = dict(zip(free.names, free.shapes, strict=True))
    weights = [name for name in free.head if len(shapes[name]) == 2]
    if len(weights) != 1:
        raise Refused("the model has no linear layer of its own at its end; ccvr trains that one, and nothing else")
    if layout.private:
        raise Refused(
            f"{fed.method} keeps {', '.join(layout.private)} private, so the server has no whole model to calibrate; "
            "calibrate a run without private layers"
        )
    if layout.head != free.head:
        raise Refused(
            f"{fed.method} froze {', '.join(n for n in free.head if n not in layout.head)}, which ccvr would train; "
            "calibrate a run that trains its last layer"
        )
    return weights + [name for name in free.head if name not in weights]
