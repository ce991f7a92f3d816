"""The loop over rounds: sample, execute, absorb, evaluate. What is fixed is a `Federation`, what moves is a `State`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast import diagnose
from holdfast.check import Sheet
from holdfast.data.augment import Augment
from holdfast.data.plan import Work, generator, keys, root, sample, table
from holdfast.data.redraw import BOTH, Drift, redrawn
from holdfast.data.sets import Dataset
from holdfast.errors import Failed
from holdfast.evaluate import evaluate as judged
from holdfast.execute import Cohort, Executor, Options, auto
from holdfast.execute.blame import told
from holdfast.feeding import Feeder
from holdfast.memory import Memory, Rows
from holdfast.method import Method
from holdfast.personal import Tuning, finetuned, personal
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
    clients: Sequence[np.ndarray]  # sample indices of each
    sizes: np.ndarray  # how many
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
    augment: Augment = Augment("none")  # noqa: RUF009 - frozen
    tests: Sequence[np.ndarray] = ()  # every client's own test rows, where the split has them
    tests_from: str = "test"  # or 'train', held out there
    drift: Drift = BOTH
    proxy: Batch | None = None  # labelled samples that the server holds, none of them in the test data
    whole: Task | None = None  # the task with the tensors that the method froze
    tuning: Tuning | None = None  # after the last round

    @property
    def longest(self) -> int:
        """Local steps of the client that takes most."""
        return self.work.count(int(self.sizes.max()))

    @cached_property
    def mixes(self) -> Tensor:
        """How many samples of every class every client holds [N, C]."""
        return self.counted(range(len(self.clients)))

    @property
    def width(self) -> int:
        """Rows of a padded batch: no more than anybody has. Of the split alone, for a client's bits depend on it."""
        dealt = self.drift.kind == "client"  # that drift deals parts of any size
        return min(self.work.batch, int(self.sizes.sum() if dealt else self.sizes.max()))

    def visiting(self, ids: np.ndarray) -> Federation:
        """With the samples of these clients, where they are made when they come."""
        return replace(self, data=self.data.visiting(ids)) if self.data.source else self

    def counted(self, ids: Sequence[int]) -> Tensor:
        """How many samples of every class these clients hold [K, C]."""
        labels, total = self.data.y.cpu(), self.data.classes
        held = (self.data.take(torch.from_numpy(self.clients[i]))[1] for i in ids) if self.data.source else (
            labels[torch.from_numpy(self.clients[i])] for i in ids)  # fmt: skip
        return torch.stack([torch.bincount(y.cpu(), minlength=total) for y in held])

    @cached_property
    def feed(self) -> Feeder:
        """Makes training batches."""
        return Feeder.of(self.data, self.rows, self.augment, self.task.start.dtype)

    def plain(self, index: Tensor, live: Tensor) -> Batch:
        """Samples as they are, normalised."""
        return self.feed.plain(index, live)


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
    fed = fed.visiting(ids)
    cohort = gather(fed, state, t, ids)
    lr = fed.lr * fed.lr_decay**t
    with told(lambda: f"round {t + 1}, at the server"):
        down = cast(method, state.server, torch.tensor(lr, dtype=state.server.w.dtype, device=device))
    ups, kept = fed.execute(fed.options, down, cohort, fed.feed)
    ups, kept, lost, why = finite(fed, t, down, cohort, ups, kept)
    population = torch.tensor(float(len(fed.clients)), dtype=state.server.w.dtype, device=device)
    expected = population * fed.cohort if isinstance(fed.cohort, float) else torch.full_like(population, fed.cohort)

    def absorbed(method: Method) -> Server:
        ids, seed = cohort.ids.to(device), root(fed.seed, device)
        with told(lambda: f"round {t + 1}, at the server"):
            more = {"proxy": fed.proxy, "expected": expected}
            return absorb(method, fed.task, state.server, down, ups, ids, population, seed, **more)

    server = absorbed(method)
    if not diagnose.sound((server.w, server.buffers, server.parts)):
        why = diagnose.server(method, absorbed) or "the new model is not finite"
        raise Failed(f"round {t + 1}, at the server: {why}; start anew with a lower lr, or a lower one at the server")
    state.memory.store(cohort.ids.tolist(), kept)
    state.server = server
    trained = time.perf_counter()
    row: Row = {"round": t + 1, "lr": lr, **figures(fed, ups, lost, why), **shown(method, server)}
    if remark := auto.happened(fed.execute):
        row["remark"] = remark
    if last or (t + 1) % fed.eval_every == 0:
        row |= evaluate(fed, state)
    if last and fed.tuning:
        row |= finetuned(fed, state)
    return row | {"train_seconds": trained - began, "eval_seconds": time.perf_counter() - trained}


def gather(fed: Federation, state: State, t: int, ids: np.ndarray) -> Cohort:
    """The clients of a round with their batches, cards and memory."""
    held, counts = dealt(fed, t, ids)
    draws = [generator(fed.seed, "batches", t, int(i)) for i in ids]
    batches = [fed.work.batches(rows, draw) for rows, draw in zip(held, draws, strict=True)]
    index, live = table(batches, fed.width)
    chosen, device = torch.from_numpy(ids), state.server.w.device
    counts = counts.to(device, state.server.w.dtype)
    cards = {"n": counts.sum(1), "classes": counts}
    return Cohort(
        chosen, keys(fed.seed, t, chosen).to(device), index, live, cards, state.memory.rows(chosen.tolist())
    )  # fmt: skip


def dealt(fed: Federation, t: int, ids: np.ndarray) -> tuple[list[np.ndarray], Tensor]:
    """The samples that the clients of a round train on, and how many of every class that makes."""
    held = [fed.clients[i] for i in ids]
    if not fed.drift.redraws:
        return held, fed.counted(ids.tolist())
    labels, total = fed.data.y.cpu().numpy(), fed.data.classes
    parts = redrawn(fed.drift, held, labels, total, generator(fed.seed, "drift", t))
    return parts, torch.from_numpy(np.stack([np.bincount(labels[rows], minlength=total) for rows in parts]))


def finite(
    fed: Federation, t: int, down: Down, cohort: Cohort, ups: Up, kept: Rows
) -> tuple[Up, Rows, list[int], str]:  # fmt: skip
    """Clients whose update is not finite: the run stops and names them, or goes on as if they had not answered.

    Also why the first of them is lost.
    """
    stacks = [t for t in leaves((ups.delta, ups.buffers, ups.parts, kept)) if t.numel()]
    sound = torch.stack([torch.isfinite(t).reshape(len(t), -1).all(1) for t in stacks]).all(0)
    if bool(sound.all()):
        return ups, kept, [], ""
    rows = (~sound.cpu()).nonzero().flatten().tolist()
    lost = cohort.ids[rows].tolist()
    why = diagnose.client(fed.method.bound(fed.options), fed.task, down, cohort, rows[0], fed.feed)
    why = f"client {lost[0]}: {why}" if why else ""
    if fed.on_nan == "stop":
        named = f" ({why})" if why else ""
        raise Failed(
            f"round {t + 1}: the update of client{'s' * (len(lost) > 1)} {', '.join(map(str, lost))} is not finite"
            f"{named}; start anew with a lower lr, with clip, or with --on-nan drop, which leaves such clients out"
        )

    def keep(new: Tensor, old: Tensor) -> Tensor:
        return torch.where(sound.view(-1, *[1] * (new.dim() - 1)), new, old)

    buffers = {name: keep(b, down.buffers[name].expand_as(b)) for name, b in ups.buffers.items()}
    silent = mapped(lambda new: keep(new, torch.zeros_like(new)), (ups.delta, ups.parts, ups.card))
    return Up(silent[0], buffers, silent[1], silent[2]), mapped(keep, kept, cohort.memory), lost, why


def figures(fed: Federation, ups: Up, lost: list[int], why: str) -> Row:
    steps = ups.card["steps"]
    trained = steps > 0
    many = int(trained.sum())
    loss = float(ups.card["loss"][trained].mean()) if many else None
    row: Row = {"clients": len(steps), "trained": many, "steps": int(steps.sum()), "train_loss": loss}
    row |= {"bytes_down": len(steps) * fed.sheet.down, "bytes_up": many * fed.sheet.up}
    return row | ({"dropped": lost, "dropped_why": why} if lost else {})


def shown(method: Method, server: Server) -> Row:
    """The scalars that parts keep for a person to see, such as FedEve's gain."""
    return {f"{p.name}.{key}": float(server.parts[p.name][key]) for p in method.parts for key in p.shows}


def evaluate(fed: Federation, state: State) -> Row:
    """The server's model; with private tensors, every client's own model."""
    return personal(fed, state) if fed.task.layout.private else judged(fed, state)
