"""Check a method against a paper in three lines."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from holdfast.data.plan import keys, root
from holdfast.errors import Refused
from holdfast.execute import Cohort, Executor, tensors
from holdfast.execute.batched import Batched
from holdfast.execute.loop import Loop
from holdfast.method import Method
from holdfast.round import absorb, cast, open_memory, open_server
from holdfast.task import Batch, Task
from holdfast.text import parse
from holdfast.vector import Layout, Vector, mapped, repeated


def quadratic(w: Vector, batch: Batch) -> Tensor:
    a, b = batch.x.unbind(1)
    return batch.mean(0.5 * (a * (w - b).square()).sum(1))


def trajectory(
    method: str | Method,
    a: Tensor,
    b: Tensor,
    w0: Tensor,
    *,
    rounds: int,
    steps: int | Sequence[int],
    lr: float | Sequence[float],
    cohort: Sequence[Sequence[int]] | None = None,
    sizes: Sequence[float] | None = None,
    engine: str = "loop",
    seed: int = 0,
    shape: tuple[int, ...] | None = None,
) -> Tensor:
    """The vector that would be evaluated after each round [rounds, P], in float64.

    Client i has f_i(w) = 1/2 sum_j a_ij (w_j - b_ij)^2 and takes full gradients; a and b are [N, P]. Round t takes
    the clients `cohort[t % len(cohort)]`, or all; `sizes` are the weights n_i; `steps` and `lr` are one number, or one
    a client and one a round. The vector is one tensor named 'weight', of `shape` if given. Example:

        trajectory("scaffold", a, b, w0, rounds=3, steps=5, lr=0.1)
    """
    method = parse(method) if isinstance(method, str) else method
    a, b, w0 = (torch.as_tensor(t, dtype=torch.float64) for t in (a, b, w0))
    clients, size = a.shape
    layout = Layout(("weight",), (shape or (size,),), size)
    task = Task.of(quadratic, layout=layout, dtype=torch.float64).having(start=w0.clone())
    task = task.keeping(method.private(layout))
    each = [steps] * clients if isinstance(steps, int) else list(steps)
    rates = [lr] * rounds if isinstance(lr, int | float) else list(lr)
    n = torch.ones(clients, dtype=torch.float64) if sizes is None else torch.tensor(sizes, dtype=torch.float64)
    run = executor(engine, method, task, max(map(len, cohort)) if cohort else clients)
    options = tensors(method)
    server, memory = (
        open_server(method, task, clients),
        mapped(torch.clone, repeated(open_memory(method, task, clients), clients)),
    )
    rows, population = torch.stack((a, b), 1), torch.tensor(float(clients), dtype=torch.float64)
    path: list[Tensor] = []
    for t in range(rounds):
        ids = torch.tensor(sorted(cohort[t % len(cohort)]) if cohort else range(clients))
        taken = torch.tensor([each[i] for i in ids.tolist()])
        live = (torch.arange(int(taken.max()))[None, :] < taken[:, None])[..., None]
        index = ids[:, None, None].expand(live.shape)
        cards = {"n": n[ids], "classes": torch.ones(len(ids), 1, dtype=torch.float64)}
        now = Cohort(ids, keys(seed, t, ids), index, live, cards, mapped(lambda m, i=ids: m[i], memory))
        down = cast(method.bound(options), server, torch.tensor(rates[t], dtype=torch.float64))
        ups, kept = run(options, down, now, lambda i, alive: Batch(rows[i], i, alive))
        mapped(lambda m, new, i=ids: m.index_copy_(0, i, new), memory, kept)
        server = absorb(method.bound(options), task, server, down, ups, ids, population, root(seed))
        path.append(server.w)
    return torch.stack(path)


def executor(engine: str, method: Method, task: Task, lanes: int) -> Executor:
    if engine not in ("loop", "batched"):
        raise Refused(f"engine {engine!r} does not exist; choose 'loop' or 'batched'")
    return Loop(method, task) if engine == "loop" else Batched(method, task, lanes)
