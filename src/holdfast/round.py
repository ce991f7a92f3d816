"""The story of a round. Read this file first.

    down = cast(method, server, lr)                                     the server
    for each client of the cohort:                                      an executor maps these three over clients
        carry = begin(method, task, down, own)
        for each batch: carry = step(method, task, down, own, carry, batch, differentiate)
        up, memory = finish(method, task, down, own, carry)
    server = absorb(method, task, server, down, ups, ids, clients, seed)

Every line that calls a hook is here, one a slot (`Frozen` and `Private` are asked once, before). `server.w` is what all
share; `down.w` the point that was sent, a client's `anchor`; `start` where its local run began; `carry.w` where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from holdfast import noise
from holdfast.gradient import Differentiate
from holdfast.method import Method, Part

from holdfast.slots import (  # isort: skip
    Ascend, Cast, Close, Correct, Descend, Loss, Merge, Open, Perturb, Round, Slot, Start, Step, Transform,
    Update, Weigh,
)  # fmt: skip
from holdfast.task import Batch, Task
from holdfast.vector import Record, Vector, mapped


class Server(NamedTuple):
    """All that the server keeps between rounds."""

    w: Vector
    buffers: Record
    parts: dict[str, Record]
    round: Tensor


class Down(NamedTuple):
    """What every client of a round receives."""

    w: Vector
    buffers: Record
    parts: dict[str, Record]
    lr: Tensor
    round: Tensor


class Own(NamedTuple):
    """What one client brings: its random key, its card (n, classes), its memory from earlier rounds."""

    key: Tensor
    card: Record
    memory: dict[str, Record]


class Carry(NamedTuple):
    """What goes from one local step to the next."""

    w: Vector
    start: Vector
    buffers: Record
    parts: dict[str, Record]
    steps: Tensor
    loss: Tensor


class Up(NamedTuple):
    """What a client sends back; executors return a stack, one row a client."""

    delta: Vector
    buffers: Record
    parts: dict[str, Record]
    card: Record


def opened(method: Method, task: Task, clients: int, kind: Literal["memory", "state"]) -> dict[str, Record]:
    starts = ((p, Start(task.start, task.buffers, clients, p)) for p in method.parts)
    return {p.name: {key: init(start) for key, init in p.kept(kind).items()} for p, start in starts}


def open_server(method: Method, task: Task, clients: int) -> Server:
    parts = opened(method, task, clients, "state")
    return Server(task.start, task.buffers, parts, torch.zeros((), dtype=torch.int64, device=task.start.device))


def open_memory(method: Method, task: Task, clients: int) -> dict[str, Record]:
    """A client's memory before it has ever taken part."""
    parts = opened(method, task, clients, "memory")
    if task.layout.private:
        parts["private"] = {"w": task.layout.own(task.start)}
    return {name: record for name, record in parts.items() if record}


def cast(method: Method, server: Server, lr: Tensor) -> Down:
    """What the server sends: its model, which one part may move, and what parts send along."""
    w, extras = server.w, dict[str, Record]()
    for p in method.slot(Cast):
        w, extras[p.name] = p.cast(w, server.parts[p.name])
    return Down(w, server.buffers, extras, lr, server.round)


def begin(method: Method, task: Task, down: Down, own: Own) -> Carry:
    """Where a client starts, and the tables that live for its local run."""
    s = look(task, down, own)
    for p in method.slot(Open):
        s = replace(s, w=p.open(of(p, s, down, own)))
    s = replace(s, start=s.w)
    parts = {p.name: {key: init(of(p, s, down, own)) for key, init in p.kept("carry").items()} for p in method.parts}
    return Carry(s.w, s.w, down.buffers, parts, s.count, torch.zeros_like(down.lr))


def step(method: Method, task: Task, down: Down, own: Own, carry: Carry, batch: Batch, diff: Differentiate) -> Carry:
    """Ascend and perturb to a point, differentiate there; transform, correct, descend; step with lr."""
    s, parts = replace(look(task, down, own, carry), batch=batch, diff=diff), dict(carry.parts)

    def seen(p: Slot) -> Step:
        return of(p, s, down, own, parts)

    def objective(w: Vector) -> tuple[Tensor, Record]:
        loss, out, buffers = task.loss(w, carry.buffers, batch, lambda: s.key)
        for p in method.slot(Loss):
            loss = loss + p.loss(replace(seen(p), w=w, out=out)).to(loss.dtype)
        return loss, buffers

    at = carry.w
    first: list[Record] = []

    def grad() -> Vector:
        g, (_, buffers) = diff(objective, carry.w)
        first.append(buffers)
        return g

    for p in method.slot(Ascend):  # one part at most
        e, parts[p.name] = p.ascend(grad, parts[p.name], seen(p))
        for q in method.slot(Perturb):
            e = q.perturb(e, seen(q))
        at = carry.w + e
    g, (loss, buffers) = diff(objective, at)
    buffers = (*first, buffers)[0]  # running statistics are those at w, if there was a pass at w
    for p in method.slot(Transform):
        g = p.transform(g, seen(p))
    s = replace(s, data=g, stiffness=method.stiffness())
    for p in method.slot(Correct):
        g = g + task.layout.shared(p.correct(seen(p)))
    for p in method.slot(Descend):
        g, parts[p.name] = p.descend(g, parts[p.name], seen(p))
    w = torch.addcmul(carry.w, g, down.lr, value=-1)  # w - lr g in one pass
    return Carry(w, carry.start, buffers, parts, carry.steps + 1, carry.loss + loss)


def finish(method: Method, task: Task, down: Down, own: Own, carry: Carry) -> tuple[Up, dict[str, Record]]:
    """What a client sends and remembers. One that took no step sends zeros and remembers what it knew."""
    trained, count = carry.steps > 0, carry.steps.clamp(min=1)  # no part divides by zero steps
    s = replace(look(task, down, own, carry), count=count, span=method.span(count), stiffness=method.stiffness())
    delta, up, memory = task.layout.shared(carry.w - down.w), dict[str, Record](), dict(own.memory)
    for p in method.slot(Close):
        delta, up[p.name], kept = p.close(delta, of(p, s, down, own, carry.parts))
        memory.update({p.name: kept} if kept else {})
    if task.layout.private:
        memory["private"] = {"w": task.layout.own(carry.w)}
        up = mapped(task.layout.shared, up)
    delta, up = where(trained, (delta, up), mapped(torch.zeros_like, (delta, up)))
    card = {**own.card, "steps": carry.steps, "span": s.span * trained, "loss": carry.loss / count}
    return Up(delta, carry.buffers, up, card), where(trained, memory, own.memory)


def absorb(
    method: Method, task: Task, server: Server, down: Down, ups: Up, ids: Tensor, clients: Tensor, seed: Tensor,
    view: Callable[[Any], Any] = lambda r: r, proxy: Batch | None = None,
) -> Server:  # fmt: skip
    """Weigh, merge, average, update. `ups` is stacked in ascending id; `view` lets a data sheet watch what is read."""
    live = ups.card["steps"] > 0
    source, cohort = noise.fold(seed, server.round), live.sum().to(server.w.dtype)
    r = Round(task, server.w, down.w, down.lr, server.round, source, ids, ups.card, live, cohort, clients, ups.delta)

    def seen(p: Slot) -> Round:
        sent = {key: r.reduce(method.uplink(p.name)[key], stack) for key, stack in ups.parts.get(p.name, {}).items()}
        return view(replace(r, up=sent, st=server.parts[p.name], tag=p.tag))

    weights = torch.ones_like(r.cards["n"]) if method.equal else r.cards["n"]
    for p in method.slot(Weigh):
        weights = p.weigh(view(replace(r, weights=weights, st=server.parts[p.name])))
    weights = torch.where(live, weights, 0)
    r = replace(r, weights=weights / torch.where(weights.sum() > 0, weights.sum(), 1), proxy=proxy)
    # Floating buffers are averaged like the model; counters take the largest.
    buffers = {k: r.reduce("weighted", b) if b.is_floating_point() else b.amax(0) for k, b in ups.buffers.items()}
    r, merged = replace(r, buffers=buffers), r.deltas
    for p in method.slot(Merge):
        merged = p.merge(merged, seen(p))
    delta = r.weights @ merged if merged.dim() == 2 else merged
    parts = dict(server.parts)
    for p in method.slot(Update):
        delta, parts[p.name] = p.update(delta, seen(p))
    new = Server(server.w + delta, buffers, parts, server.round)
    return where(live.any(), new, server)._replace(round=server.round + 1)


def look(task: Task, down: Down, own: Own, carry: Carry | None = None) -> Step:
    """What every hook of a client sees at a moment; `of` adds what is the part's own."""
    anchor = task.layout.place(down.w, own.memory["private"]["w"]) if task.layout.private else down.w
    if carry is None:
        carry = Carry(anchor, anchor, down.buffers, {}, torch.zeros_like(down.lr), down.lr)
    moving = carry.w, carry.start, anchor, down.lr, carry.steps, down.round, own.key, own.card, carry.buffers
    return Step(task, *moving, down.buffers)


def of(p: Slot | Part, s: Step, down: Down, own: Own, carries: dict[str, Record] | None = None) -> Step:
    mem, got, carry = own.memory.get(p.name, {}), down.parts.get(p.name, {}), (carries or {}).get(p.name, {})
    return replace(s, mem=mem, down=got, carry=carry, tag=p.tag)


def where(condition: Tensor, new: Any, old: Any) -> Any:
    return mapped(partial(torch.where, condition), new, old)
