"""Check a method against a paper in three lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

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
    classes: Tensor | None = None,
    proxy: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The vector that would be evaluated after each round [rounds, P], in float64.

    Client i has f_i(w) = 1/2 sum_j a_ij (w_j - b_ij)^2 and takes full gradients; a and b are [N, P]. Round t takes
    the clients `cohort[t % len(cohort)]`, or all; `sizes` are the weights n_i, and who has 0 does not train; `steps`
    and `lr` are one number, or one a client and one a round. The vector is one tensor named 'weight', of `shape` if
    given. `classes` [N, C] counts labels, for parts that read them; `proxy` is the a and b of one more client, whose
    loss the server knows. Example:

        trajectory("scaffold", a, b, w0, rounds=3, steps=5, lr=0.1)
    """
    method = parse(method) if isinstance(method, str) else method
    a, b, w0 = (torch.as_tensor(t, dtype=torch.float64) for t in (a, b, w0))
    validate(a, b, w0, rounds, steps, lr, cohort, sizes)
    clients, size = a.shape
    layout = Layout(("weight",), (shape or (size,),), size)
    task = method.fit(Task.of(quadratic, layout=layout, dtype=torch.float64).having(start=w0.clone()))
    rates = listed(lr, rounds)
    n = torch.ones(clients, dtype=torch.float64) if sizes is None else torch.as_tensor(sizes, dtype=torch.float64)
    each = torch.tensor(listed(steps, clients)) * (n > 0)
    run = executor(engine, method, task, max(map(len, cohort)) if cohort else clients)
    options = tensors(method)
    server, memory = (
        open_server(method, task, clients),
        mapped(torch.clone, repeated(open_memory(method, task, clients), clients)),
    )
    rows, population = torch.stack((a, b), 1), torch.tensor(float(clients), dtype=torch.float64)
    labels = torch.ones(clients, 1, dtype=torch.float64) if classes is None else torch.as_tensor(classes).double()
    zero = torch.zeros(1, dtype=torch.int64)
    held = None if proxy is None else Batch(torch.stack([*map(torch.as_tensor, proxy)])[None], zero, zero == 0)
    path: list[Tensor] = []
    for t in range(rounds):
        ids = torch.tensor(sorted(cohort[t % len(cohort)]) if cohort else range(clients))
        taken = each[ids]
        live = (torch.arange(int(taken.max()))[None, :] < taken[:, None])[..., None]
        index = ids[:, None, None].expand(live.shape)
        cards = {"n": n[ids], "classes": labels[ids]}
        now = Cohort(ids, keys(seed, t, ids), index, live, cards, mapped(lambda m, i=ids: m[i], memory))
        down = cast(method.bound(options), server, torch.tensor(rates[t], dtype=torch.float64))
        ups, kept = run(options, down, now, lambda i, alive, *_: Batch(rows[i], i, alive))
        mapped(lambda m, new, i=ids: m.index_copy_(0, i, new), memory, kept)
        server = absorb(method.bound(options), task, server, down, ups, ids, population, root(seed), proxy=held)
        path.append(server.w)
    return torch.stack(path)


def validate(
    a: Tensor, b: Tensor, w0: Tensor, rounds: int, steps: int | Sequence[int], lr: float | Sequence[float],
    cohort: Sequence[Sequence[int]] | None, sizes: Sequence[float] | None,
) -> None:  # fmt: skip
    """What is wrong with the arguments of `trajectory`, all at once."""
    if a.dim() != 2 or b.shape != a.shape or w0.shape != a.shape[1:]:
        raise Refused(f"a and b must be [N, P] and w0 [P]; they are {[tuple(t.shape) for t in (a, b, w0)]}")
    clients = len(a)
    each, rates = listed(steps, clients), listed(lr, 1)
    weights = [1.0] * clients if sizes is None else list(sizes)
    counts = all(isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 0 for k in each)
    company = cohort or []
    rules = (
        (all(bool(torch.isfinite(t).all()) for t in (a, b, w0)), "a, b or w0 has values that are not finite"),
        (isinstance(rounds, int) and rounds >= 1, f"rounds={rounds} must be a whole number of at least 1"),
        (len(each) == clients, f"steps has {len(each)} entries for {clients} clients"),
        (counts and any(each), f"steps={steps} must be whole numbers, not all 0"),
        (isinstance(lr, Real) or len(rates) >= rounds, f"lr has {len(rates)} entries for {rounds} rounds"),
        (all(r > 0 and math.isfinite(r) for r in rates), f"lr={lr} must be finite and above 0"),
        (len(weights) == clients, f"sizes has {len(weights)} entries for {clients} clients"),
        (all(n >= 0 and math.isfinite(n) for n in weights), f"sizes={sizes} must be finite and not negative"),
        (any(n > 0 for n in weights), f"sizes={sizes} leaves nobody who trains; give somebody a size above 0"),
        (cohort is None or len(cohort) > 0, "cohort is empty; leave it out to take all clients"),
        (all(len(members) for members in company), "cohort has an empty list; name a client"),
        (all(len({*members}) == len(members) for members in company), "cohort names a client twice in a round"),
        (
            all(i in range(clients) for members in company for i in members),
            f"cohort names a client that does not exist; there are {clients}, from 0",
        ),
    )
    if problems := [reason for good, reason in rules if not good]:
        raise Refused(*problems)


def listed(value: Any, many: int) -> list[Any]:
    return [value] * many if isinstance(value, Real) else list(value)


def executor(engine: str, method: Method, task: Task, lanes: int) -> Executor:
    if engine not in ("loop", "batched"):
        raise Refused(f"engine {engine!r} does not exist; choose 'loop' or 'batched'")
    return Loop(method, task) if engine == "loop" else Batched(method, task, lanes)
