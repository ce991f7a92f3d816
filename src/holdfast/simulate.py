"""The loop over rounds: sample, execute, absorb, evaluate. What is fixed is a `Federation`, what moves is a `State`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.check import Sheet
from holdfast.data.plan import Work, generator, keys, root, sample, table
from holdfast.data.sets import Dataset
from holdfast.errors import Failed
from holdfast.execute import Cohort, Executor, Options
from holdfast.memory import Memory, Rows
from holdfast.method import Method
from holdfast.round import Down, Server, Up, absorb, cast, open_memory, open_server
from holdfast.task import Batch, Task
from holdfast.vector import leaves, mapped

Row = dict[str, Any]  # one round's figures; wall-clock ones in keys that end in `_seconds`


@dataclass(frozen=True, eq=False)
class Federation:
    """Everything about a run that no round changes."""

    method: Method
    task: Task
    data: Dataset
    clients: tuple[np.ndarray, ...]  # sample indices of each
    counts: Tensor  # [N, C]
    work: Work
    cohort: int | float  # so many clients a round, or each with this probability
    lr: float
    lr_decay: float
    seed: int
    sheet: Sheet
    execute: Executor
    options: Options
    on_nan: str = "stop"
    eval_every: int = 1
    rows: Tensor | None = None  # all training samples, normalised once, where that takes little memory

    @property
    def longest(self) -> int:
        """Local steps of the client that takes most."""
        return max(self.work.count(len(rows)) for rows in self.clients)

    def feed(self, index: Tensor, live: Tensor) -> Batch:
        device = self.data.x.device
        index, live = index.to(device), live.to(device)
        if self.rows is not None:
            return Batch(self.rows[index], self.data.y[index], live)
        return Batch(self.data.prepare(self.data.x[index], self.task.start.dtype), self.data.y[index], live)


@dataclass
class State:
    """All that goes from round to round, and all that a checkpoint has to hold."""

    server: Server
    memory: Memory

    @staticmethod
    def of(fed: Federation) -> State:
        server = open_server(fed.method, fed.task, len(fed.clients))
        return State(server, Memory(open_memory(fed.method, fed.task, len(fed.clients))))

    @property
    def round(self) -> int:
        return int(self.server.round)


def rounds(fed: Federation, state: State, until: int) -> Iterator[Row]:
    """Advances `state` round by round and yields each round's figures."""
    while state.round < until:
        yield advance(fed, state, last=state.round + 1 == until)


def advance(fed: Federation, state: State, last: bool = False) -> Row:
    t, began = state.round, time.perf_counter()
    method, device = fed.method.bound(fed.options), state.server.w.device
    ids = sample(fed.seed, t, len(fed.clients), fed.cohort)
    cohort = gather(fed, state, t, ids)
    lr = fed.lr * fed.lr_decay**t
    down = cast(method, state.server, torch.tensor(lr, dtype=state.server.w.dtype, device=device))
    ups, kept = fed.execute(fed.options, down, cohort, fed.feed)
    ups, kept, lost = finite(fed, t, down, cohort, ups, kept)
    population = torch.tensor(float(len(fed.clients)), dtype=state.server.w.dtype, device=device)
    server = absorb(
        method, fed.task, state.server, down, ups, cohort.ids.to(device), population, root(fed.seed, device)
    )
    if not all(bool(torch.isfinite(tensor).all()) for tensor in leaves((server.w, server.buffers, server.parts))):
        raise Failed(f"round {t + 1}: the server's state is not finite after the update; start anew with a lower lr")
    state.memory.store(cohort.ids.tolist(), kept)
    state.server = server
    trained = time.perf_counter()
    row: Row = {"round": t + 1, "lr": lr, **figures(fed, ups, lost)}
    if last or (t + 1) % fed.eval_every == 0:
        row |= evaluate(fed, state)
    return row | {"train_seconds": trained - began, "eval_seconds": time.perf_counter() - trained}


def gather(fed: Federation, state: State, t: int, ids: np.ndarray) -> Cohort:
    """The clients of a round with their batches, cards and memory."""
    batches = [fed.work.batches(fed.clients[i], generator(fed.seed, "batches", t, int(i))) for i in ids]
    index, live = table(batches, fed.work.batch)
    chosen, device = torch.from_numpy(ids), state.server.w.device
    counts = fed.counts[chosen].to(device, state.server.w.dtype)
    cards = {"n": counts.sum(1), "classes": counts}
    return Cohort(
        chosen, keys(fed.seed, t, chosen).to(device), index, live, cards, state.memory.rows(chosen.tolist())
    )  # fmt: skip


def finite(fed: Federation, t: int, down: Down, cohort: Cohort, ups: Up, kept: Rows) -> tuple[Up, Rows, list[int]]:
    """Clients whose update is not finite: the run stops and names them, or goes on as if they had not answered."""
    stacks = [t for t in leaves((ups.delta, ups.buffers, ups.parts, kept)) if t.numel()]
    sound = torch.stack([torch.isfinite(t).reshape(len(t), -1).all(1) for t in stacks]).all(0)
    if bool(sound.all()):
        return ups, kept, []
    lost = cohort.ids[~sound.cpu()].tolist()
    if fed.on_nan == "stop":
        raise Failed(
            f"round {t + 1}: the update of client{'s' * (len(lost) > 1)} {', '.join(map(str, lost))} is not finite; "
            "start anew with a lower lr, with clip, or with --on-nan drop, which leaves such clients out"
        )

    def keep(new: Tensor, old: Tensor) -> Tensor:
        return torch.where(sound.view(-1, *[1] * (new.dim() - 1)), new, old)

    buffers = {name: keep(b, down.buffers[name].expand_as(b)) for name, b in ups.buffers.items()}
    silent = mapped(lambda new: keep(new, torch.zeros_like(new)), (ups.delta, ups.parts, ups.card))
    return Up(silent[0], buffers, silent[1], silent[2]), mapped(keep, kept, cohort.memory), lost


def figures(fed: Federation, ups: Up, lost: list[int]) -> Row:
    steps = ups.card["steps"]
    trained = steps > 0
    many = int(trained.sum())
    loss = float(ups.card["loss"][trained].mean()) if many else None
    row: Row = {"clients": len(steps), "trained": many, "steps": int(steps.sum()), "train_loss": loss}
    row |= {"bytes_down": len(steps) * fed.sheet.down, "bytes_up": many * fed.sheet.up}
    return row | ({"dropped": lost} if lost else {})


def evaluate(fed: Federation, state: State) -> Row:
    """The server's model on the test set; with private tensors, every client's own model."""
    if fed.task.layout.private:
        return personal(fed, state)
    right, loss = scored(fed, state.server, state.server.w)
    return {"accuracy": float(right.double().mean()), "loss": float(loss.double().mean())}


def personal(fed: Federation, state: State) -> Row:
    """Each client's accuracy expected on test data with its own class shares; mean, spread and worst decile."""
    classes = torch.nn.functional.one_hot(fed.data.test_y, fed.data.classes).double()
    per_class = classes.sum(0).clamp(min=1)
    scores: list[float] = []
    for i in range(len(fed.clients)):
        if not len(fed.clients[i]):
            continue
        own = state.memory.look(i)["private"]["w"]
        right, _ = scored(fed, state.server, fed.task.layout.place(state.server.w, own))
        shares = fed.counts[i].double().to(right.device)
        scores.append(float((right.double() @ classes / per_class) @ shares / shares.sum()))
    each = np.array(scores)
    return {
        "personal_accuracy": float(each.mean()),
        "personal_sd": float(each.std()),
        "personal_worst_decile": float(np.quantile(each, 0.1)),
    }


@torch.no_grad()
def scored(fed: Federation, server: Server, w: Tensor, rows: int = 1000) -> tuple[Tensor, Tensor]:
    """For every test sample: whether it is classified rightly, and its loss."""
    right: list[Tensor] = []
    losses: list[Tensor] = []
    for i in range(0, len(fed.data.test_y), rows):
        x, y = fed.data.test_x[i : i + rows], fed.data.test_y[i : i + rows]
        batch = Batch(fed.data.prepare(x, w.dtype), y, torch.ones_like(y, dtype=torch.bool))
        logits = fed.task.forward(w, server.buffers, batch).logits
        right.append(logits.argmax(1) == y)
        losses.append(torch.nn.functional.cross_entropy(logits, y, reduction="none"))
    return torch.cat(right), torch.cat(losses)
