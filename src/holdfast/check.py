"""The data sheet of a method on a task: everything derived by running the parts' own functions once on meta tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from holdfast.errors import Refused
from holdfast.execute.blame import blamed
from holdfast.gradient import Objective, autograd
from holdfast.method import Method
from holdfast.round import Own, Up, absorb, begin, cast, finish, open_memory, open_server, step
from holdfast.slots import Merge
from holdfast.task import Batch, Output, Task
from holdfast.vector import Record, Vector, nbytes, repeated


@dataclass(frozen=True)
class Sheet:
    """What a method costs on a task, for one client and round unless said otherwise."""

    model: int  # bytes of one shared vector, the unit of comparison
    down: int
    up: int
    memory: int  # kept by a client between rounds
    state: int  # kept by the server, its model included
    passes: int  # forward and backward passes of a local step
    forwards: int  # extra forward passes of a local step
    individual: bool  # the server needs each client's update, not only sums of them
    proxy: bool  # the server needs labelled samples of its own

    def rows(self) -> list[tuple[str, str]]:
        times = {name: getattr(self, name) / max(self.model, 1) for name in ("down", "up", "memory", "state")}
        cells = [(name, f"{getattr(self, name):,} bytes ({ratio:.2f} x model)") for name, ratio in times.items()]
        return [
            *cells,
            ("passes a step", str(self.passes)),
            ("extra forwards a step", str(self.forwards)),
            ("needs individual updates", "yes" if self.individual else "no"),
            ("needs samples at the server", "yes" if self.proxy else "no"),
        ]


class Counted(Task):
    """The same task, counting forward passes of other models."""

    def __init__(self, task: Task):
        self.task, self.forwards = task, 0
        self.layout, self.start, self.buffers = task.layout, task.start, task.buffers

    def loss(self, w: Vector, buffers: Record, batch: Batch, key: Any) -> tuple[Tensor, Output, Record]:
        return self.task.loss(w, buffers, batch, key)

    def forward(self, w: Vector, buffers: Record, batch: Batch) -> Output:
        self.forwards += not w.requires_grad  # with a gradient it belongs to a pass
        return self.task.forward(w, buffers, batch)

    def stage(self, w: Vector, buffers: Record, batch: Batch, x: Tensor) -> Tensor:
        self.forwards += 1
        return self.task.stage(w, buffers, batch, x)

    def having(self, **changes: Any) -> Task:
        return Counted(self.task.having(**changes))

    def on(self, device: torch.device | str) -> Task:
        return Counted(self.task.on(device))

    def without(self, frozen: tuple[str, ...]) -> Task:
        return Counted(self.task.without(frozen))

    def classes(self, batch: Batch) -> int:
        return self.task.forward(self.start, self.buffers, batch).logits.shape[1]


class Watched:
    """A `Round` that notes what is read of it."""

    def __init__(self, inner: Any, reads: set[str]):
        self.inner, self.reads = inner, reads

    def __getattr__(self, name: str) -> Any:
        self.reads.add(name)
        return getattr(self.inner, name)


def sheet(method: Method, task: Task, sample: Batch, clients: int = 100, cohort: int = 2) -> Sheet:
    """Runs cast, begin, step, finish and absorb once, on meta tensors; on real ones where a model looks at values."""
    try:
        return measured(method, task, sample, clients, cohort, "meta")
    except Refused:
        raise
    except Exception:
        try:
            return measured(method, task, sample, clients, cohort, sample.live.device)
        except Refused:
            raise
        except Exception as error:
            if whose := blamed(error):
                raise Refused(f"{whose}{reason(error)}; mend it, or take a model that it can stand beside") from error
            raise Refused(
                f"the model cannot take a training step on this data: {reason(error)}; adapt one to the other"
            ) from error


def reason(error: Exception) -> str:
    """The first line of what code of the user's raised, with its kind where that tells more."""
    said = (str(error).strip().splitlines() or [""])[0]
    return said if isinstance(error, RuntimeError) and said else f"{type(error).__name__}: {said}".removesuffix(": ")


def measured(method: Method, task: Task, sample: Batch, clients: int, cohort: int, device: torch.device | str) -> Sheet:
    task = Counted(method.fit(task).on(device))
    batch = Batch(*(t.to(device) for t in sample))
    passes = [0]

    def counting(objective: Objective, w: Vector) -> tuple[Vector, tuple[Tensor, Record]]:
        passes[0] += 1
        return autograd(objective, w)

    scalar = torch.zeros((), device=device, dtype=task.start.dtype)
    server, memory = open_server(method, task, clients), open_memory(method, task, clients)
    down = cast(method, server, scalar)
    card = {"n": scalar, "classes": torch.zeros(task.classes(batch), device=device, dtype=scalar.dtype)}
    own = Own(torch.zeros((), device=device, dtype=torch.int64), card, memory)
    carry = step(method, task, down, own, begin(method, task, down, own), batch, counting)
    up, kept = finish(method, task, down, own, carry)
    declared(method, up, kept, memory)
    ups = repeated(up, cohort)
    ids, reads = torch.zeros(cohort, device=device, dtype=torch.int64), set[str]()
    absorb(method, task, server, down, ups, ids, scalar, own.key, lambda r: Watched(r, reads), batch)
    wire = partial(nbytes, task.layout)
    return Sheet(
        model=task.layout.shared_size * scalar.element_size(),
        down=wire((down.w, down.buffers, down.parts)),
        up=wire((up.delta, up.buffers, up.parts)),
        memory=wire(memory, private=True),
        state=wire((server.w, server.buffers, server.parts)),
        passes=passes[0],
        forwards=task.forwards,
        individual=bool(method.slot(Merge)) or "deltas" in reads,
        proxy="proxy_loss" in reads,
    )


def declared(method: Method, up: Up, kept: dict[str, Record], memory: dict[str, Record]) -> None:
    """`close` must return the keys that the part declares: all of them and no other."""
    problems: list[str] = []
    for p in method.parts:
        for what, got, want in (
            ("sends", up.parts.get(p.name, {}), p.uplink),
            ("remembers", kept.get(p.name, {}), memory.get(p.name, {})),
        ):
            if set(got) != set(want):
                problems.append(f"part '{p.name}' {what} {sorted(got)} and declares {sorted(want)}; make them equal")
    if problems:
        raise Refused(*problems)
