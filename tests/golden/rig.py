"""What these tests share. ML, MS, AD, DE are methods-local.md, methods-server.md, addenda.md, decisions.md.

P8 (ML 8.1), a harder problem, a federation whose every state is in sight, and a server fed by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.data.plan import keys, root, table
from holdfast.execute import Cohort, tensors
from holdfast.method import REGISTRY, Method, Part, part
from holdfast.round import Down, Up, absorb, cast, open_memory, open_server
from holdfast.task import Batch, Task
from holdfast.testing import executor, quadratic, trajectory
from holdfast.text import parse
from holdfast.vector import Layout, mapped, repeated

F64 = torch.float64
J = torch.arange(8, dtype=F64)
A = torch.stack([1 + 0.1 * J, 2 - 0.1 * J])  # ML 8.1
B = torch.stack([1 + 0.25 * J, -1 + 0.05 * J**2])
W0 = 0.1 * J
OPTIMUM = (A * B).mean(0) / A.mean(0)

DRAW = torch.Generator().manual_seed(11)
CURVES = 0.5 + 1.5 * torch.rand(4, 8, generator=DRAW, dtype=F64)
CENTRES = 2 * torch.randn(4, 8, generator=DRAW, dtype=F64)
BEGIN = torch.randn(8, generator=DRAW, dtype=F64)
# Unequal steps, rates, sizes and company, an absent client every round, one that stands alone.
HARD: dict[str, Any] = {
    "rounds": 5, "steps": [3, 5, 1, 4], "lr": [0.1, 0.09, 0.08, 0.07, 0.06], "sizes": [3.0, 1.0, 5.0, 2.0],
    "cohort": [[0, 1, 2], [1, 3], [2], [0, 3], [0, 1]],
}  # fmt: skip


def p8(
    method: str | Method, rounds: int = 3, *, steps: int = 5, lr: float | Sequence[float] = 0.1, **more: Any
) -> Tensor:
    return trajectory(method, A, B, W0, rounds=rounds, steps=steps, lr=lr, **more)


def hard(method: str | Method, **changes: Any) -> Tensor:
    return trajectory(method, CURVES, CENTRES, BEGIN, **{**HARD, **changes})


def close(a: Any, b: Any, atol: float = 1e-12, rtol: float = 1e-12) -> None:
    a, b = torch.as_tensor(a, dtype=F64), torch.as_tensor(b, dtype=F64)
    torch.testing.assert_close(a, b, atol=atol, rtol=rtol)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=F64)


def throwaway(name: str) -> Callable[[type], Any]:
    """`part`, without leaving the class in the registry that other tests look at."""

    def decorate(cls: type) -> Any:
        made = part(name)(cls)
        del REGISTRY[name]
        return made

    return decorate


def sum_of(*terms: str | Part) -> Method:
    """A method of texts and of parts that have no text."""
    found: list[Part] = []
    for term in terms:
        found += parse(term).parts if isinstance(term, str) else [term]
    return Method(tuple(found))


class Federation:
    """Rounds by hand: `server`, `memory`, `down` and `ups` are open to the test."""

    def __init__(
        self, method: str | Method, task: Task, feed: Callable[..., Batch], sizes: Sequence[float],
        engine: str = "loop", lanes: int | None = None, seed: int = 0, classes: Any = None,
    ):  # fmt: skip
        """`classes`: how many samples of each class every client has [N, C]."""
        self.method = parse(method) if isinstance(method, str) else method
        self.task = self.method.fit(task)
        self.feed, self.n, self.seed = feed, torch.tensor(sizes, dtype=task.start.dtype), seed
        self.classes = torch.ones(len(sizes), 1) if classes is None else torch.as_tensor(classes)
        self.server = open_server(self.method, self.task, len(sizes))
        self.memory = mapped(torch.clone, repeated(open_memory(self.method, self.task, len(sizes)), len(sizes)))
        self.run = executor(engine, self.method, self.task, lanes or len(sizes))
        self.down: Down
        self.ups: Up

    def round(self, batches: Mapping[int, Sequence[Sequence[int]]], lr: float = 0.1) -> Up:
        """`batches`: which samples each client of the round sees, step by step."""
        ids = torch.tensor(sorted(batches))
        wide = max([len(b) for steps in batches.values() for b in steps], default=1)
        index, live = table([[np.array(b) for b in batches[i]] for i in ids.tolist()], wide)
        options = tensors(self.method)
        bound = self.method.bound(options)
        self.down = cast(bound, self.server, torch.tensor(lr, dtype=self.n.dtype))
        cards = {"n": self.n[ids], "classes": self.classes[ids].to(self.n.dtype)}
        memory = mapped(lambda m: m[ids], self.memory)
        cohort = Cohort(ids, keys(self.seed, int(self.server.round), ids), index, live, cards, memory)
        self.ups, kept = self.run(options, self.down, cohort, self.feed)
        mapped(lambda m, new: m.index_copy_(0, ids, new), self.memory, kept)
        population = torch.tensor(float(len(self.n)), dtype=self.n.dtype)
        self.server = absorb(bound, self.task, self.server, self.down, self.ups, ids, population, root(self.seed))
        return self.ups

    def state(self, part: str, key: str) -> Tensor:
        return self.server.parts[part][key]


class Simple(Federation):
    """Clients with one sample each, whose batch is always that sample: `steps` says how often."""

    def __init__(self, method: str | Method, task: Task, samples: Tensor, sizes: Sequence[float] | None, **more: Any):
        def feed(index: Tensor, live: Tensor, *_: object) -> Batch:
            return Batch(samples[index], index, live)

        super().__init__(method, task, feed, sizes or [1.0] * len(samples), **more)

    def go(self, steps: Mapping[int, int] | int = 5, lr: float = 0.1) -> Up:
        each = dict.fromkeys(range(len(self.n)), steps) if isinstance(steps, int) else steps
        return self.round({i: [[i]] * k for i, k in each.items()}, lr)


def quadratics(
    method: str | Method, a: Tensor = A, b: Tensor = B, w0: Tensor = W0, sizes: Sequence[float] | None = None,
    layout: Layout | None = None, **more: Any,
) -> Simple:  # fmt: skip
    """As `trajectory`, with all states in sight."""
    layout = layout or Layout(("weight",), ((len(w0),),), len(w0))
    task = Task.of(quadratic, layout=layout, dtype=F64).having(start=w0.clone())
    return Simple(method, task, torch.stack((a, b), 1), sizes, **more)


def linears(method: str | Method, slopes: Tensor, sizes: Sequence[float] | None = None, **more: Any) -> Simple:
    """Client i has the constant gradient slopes[i]; all start at zero."""

    def loss(w: Tensor, batch: Batch) -> Tensor:
        return batch.mean((batch.x * w).sum(1))

    task = Task.of(loss, layout=Layout(("weight",), ((slopes.shape[1],),), slopes.shape[1]), dtype=F64)
    return Simple(method, task, slopes, sizes, **more)


class Desk:
    """A server alone: it takes stacks of updates that the test has made up."""

    def __init__(self, method: str | Method, w0: Tensor, clients: int = 10, seed: int = 0):
        self.method = parse(method) if isinstance(method, str) else method
        layout = Layout(("weight",), ((len(w0),),), len(w0))
        self.task = Task.of(quadratic, layout=layout, dtype=F64).having(start=w0)
        self.server, self.clients, self.seed = open_server(self.method, self.task, clients), clients, root(seed)

    def take(
        self, deltas: Sequence[Sequence[float]] | Tensor, n: Sequence[float] | None = None,
        steps: Sequence[int] | None = None, up: Mapping[str, dict[str, Tensor]] | None = None,
        ids: Sequence[int] | None = None, lr: float = 1.0,
    ) -> Tensor:  # fmt: skip
        """What the server's w moves by."""
        u = torch.as_tensor(deltas, dtype=F64)
        k = torch.ones(len(u), dtype=F64) if steps is None else torch.tensor(steps, dtype=F64)
        size = torch.ones(len(u), dtype=F64) if n is None else torch.tensor(n, dtype=F64)
        card = {"n": size, "steps": k, "span": k, "loss": 0 * k, "classes": torch.ones(len(u), 1, dtype=F64)}
        rows = torch.arange(len(u)) if ids is None else torch.tensor(ids)
        before, down = self.server.w, cast(self.method, self.server, torch.tensor(lr, dtype=F64))
        population = torch.tensor(float(self.clients), dtype=F64)
        told = {"eve": {"sq": u.square().sum(1)}}  # what its clients send of themselves
        ups = Up(u, {}, {p.name: told[p.name] for p in self.method.parts if p.name in told} | dict(up or {}), card)
        self.server = absorb(self.method, self.task, self.server, down, ups, rows, population, self.seed)
        return self.server.w - before

    def state(self, part: str, key: str) -> Tensor:
        return self.server.parts[part][key]


def once(method: str | Method, deltas: Any, **more: Any) -> Tensor:
    """What one round with these updates moves a server at zero by."""
    return Desk(method, torch.zeros(len(deltas[0]), dtype=F64)).take(deltas, **more)
