"""How models score on the test set: the server's, and every client's own by its own mix of classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast import noise
from holdfast.data.plan import generator, keys, table
from holdfast.execute import Cohort, Executor
from holdfast.method import Method
from holdfast.round import Down
from holdfast.task import Batch, Task
from holdfast.vector import Record, Vector

if TYPE_CHECKING:
    from holdfast.simulate import Federation, State

PLAIN = Method(())  # SGD and nothing else


@dataclass(frozen=True, eq=False)
class Tuning:
    """What every client does with the final model: so many epochs of plain SGD on its own data."""

    epochs: int
    task: Task  # with every tensor that a method had frozen
    execute: Executor  # of PLAIN on that task


@torch.no_grad()
def scored(
    fed: Federation, w: Vector, buffers: Record, task: Task | None = None, rows: int = 1000
) -> tuple[Tensor, Tensor]:
    """For every test sample: whether it is classified rightly, and its loss."""
    right: list[Tensor] = []
    losses: list[Tensor] = []
    for i in range(0, len(fed.data.test_y), rows):
        x, y = fed.data.test_x[i : i + rows], fed.data.test_y[i : i + rows]
        batch = Batch(fed.data.prepare(x, w.dtype), y, torch.ones_like(y, dtype=torch.bool))
        logits = (task or fed.task).forward(w, buffers, batch).logits
        right.append(logits.argmax(1) == y)
        losses.append(torch.nn.functional.cross_entropy(logits, y, reduction="none"))
    return torch.cat(right), torch.cat(losses)


def personal(fed: Federation, state: State) -> dict[str, Any]:
    """Every client's own model, where tensors are private: each client's as it left it."""
    models = (
        (i, fed.task.layout.place(state.server.w, state.memory.look(i)["private"]["w"]), state.server.buffers)
        for i in holders(fed)
    )
    return spread("personal", expected(fed, models, fed.task))


def finetuned(fed: Federation, state: State) -> dict[str, Any]:
    """Every client's model after it has tuned the server's on its own data; FedBABU's evaluation. `state` stays.

    A model that is no longer finite classifies nothing rightly, and is named.
    """
    assert fed.tuning
    lost: list[int] = []

    def models() -> Iterator[tuple[int, Vector, Record]]:
        for i, w, buffers in tuned(fed, state):
            if not all(bool(torch.isfinite(t).all()) for t in (w, *buffers.values())):
                lost.append(i)
            yield i, w, buffers

    scores = expected(fed, models(), fed.tuning.task)
    scores |= dict.fromkeys(lost, 0.0)
    return spread("finetuned", scores) | ({"finetuned_lost": lost} if lost else {})


def holders(fed: Federation) -> list[int]:
    """Clients that hold samples: the others have no classes to be judged by."""
    return [i for i, samples in enumerate(fed.clients) if len(samples)]


def expected(fed: Federation, models: Any, task: Task) -> dict[int, float]:
    """Each client's accuracy expected on test data with its own class shares."""
    classes = torch.nn.functional.one_hot(fed.data.test_y, fed.data.classes).double()
    per_class = classes.sum(0).clamp(min=1)
    scores: dict[int, float] = {}
    for i, w, buffers in models:
        right, _ = scored(fed, w, buffers, task)
        shares = fed.counts[i].double().to(right.device)
        scores[i] = float((right.double() @ classes / per_class) @ shares / shares.sum())
    return scores


def spread(name: str, scores: dict[int, float]) -> dict[str, Any]:
    """Mean, spread and worst decile over clients."""
    each = np.array(list(scores.values()))
    return {
        f"{name}_accuracy": float(each.mean()),
        f"{name}_sd": float(each.std()),
        f"{name}_worst_decile": float(np.quantile(each, 0.1)),
    }


def tuned(fed: Federation, state: State) -> Iterator[tuple[int, Vector, Record]]:
    """Client, model and buffers, as many clients at a time as a round has. Private tensors are the client's own."""
    tuning, whole = fed.tuning, joined(fed, state)
    assert tuning
    layout, dtype, device = tuning.task.layout, whole.dtype, whole.device
    last = max(state.round - 1, 0)  # the round whose lr the final model was trained with
    lr = torch.tensor(fed.lr * fed.lr_decay**last, dtype=dtype, device=device)
    down = Down(whole, state.server.buffers, {}, lr, state.server.round)
    everyone, many = holders(fed), fed.cohort if isinstance(fed.cohort, int) else 0
    many = many or math.ceil(fed.cohort * len(fed.clients))
    for start in range(0, len(everyone), many):
        cohort = visited(fed, state, tuning.epochs, everyone[start : start + many])
        ups, kept = tuning.execute({}, down, cohort, fed.feed)
        for k, i in enumerate(everyone[start : start + many]):
            w = whole + ups.delta[k]
            if layout.private:
                w = layout.place(w, kept["private"]["w"][k])
            yield i, w, {name: b[k] for name, b in ups.buffers.items()}


def joined(fed: Federation, state: State) -> Vector:
    """The server's model with the tensors that a method had frozen, as they began."""
    assert fed.tuning
    whole = fed.tuning.task
    return whole.layout.join({**whole.layout.split(whole.start), **fed.task.layout.split(state.server.w)})


def visited(fed: Federation, state: State, epochs: int, ids: list[int]) -> Cohort:
    """These clients with the batches of their tuning, drawn from a stream of its own."""
    t, device, work = state.round, state.server.w.device, replace(fed.work, epochs=epochs, steps=None)
    index, live = table([work.batches(fed.clients[i], generator(fed.seed, "finetune", t, i)) for i in ids], work.batch)
    chosen = torch.tensor(ids)
    counts = fed.counts[chosen].to(device, state.server.w.dtype)
    key = noise.fold(keys(fed.seed, t, chosen), noise.tag("finetune")).to(device)
    own = {name: rows for name, rows in state.memory.rows(ids).items() if name == "private"}
    return Cohort(chosen, key, index, live, {"n": counts.sum(1), "classes": counts}, own)
