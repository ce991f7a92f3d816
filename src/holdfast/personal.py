"""How every client's own model scores: on its own test rows, or else on the test data in its own mix of classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast import noise
from holdfast.data.plan import generator, keys, table
from holdfast.evaluate import own_scored, ranked, scored
from holdfast.execute import Cohort, Executor
from holdfast.method import Method
from holdfast.metrics import in_own_mix
from holdfast.round import Down
from holdfast.task import Task
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


def personal(fed: Federation, state: State) -> dict[str, Any]:
    """Every client's own model, where tensors are private: each client's as it left it."""
    row = spread("personal", each(fed, own_models(fed, state), fed.task))
    return row | (own_ranking(fed, state) if fed.data.kind == "clicks" and fed.tests_from == "test" else {})


def own_models(fed: Federation, state: State) -> Iterator[tuple[int, Vector, Record]]:
    for i in holders(fed):
        yield i, fed.task.layout.place(state.server.w, state.memory.look(i)["private"]["w"]), state.server.buffers


def own_ranking(fed: Federation, state: State) -> dict[str, Any]:
    """Candidates of all users that hold samples, each client's scored by its own model, ranked like the server's."""
    found: list[tuple[Tensor, Tensor]] = []
    for i, w, buffers in own_models(fed, state):
        if len(fed.tests) and len(fed.tests[i]):
            first = own_scored(fed, w, buffers, fed.tests[i]).first
            found.append((first, torch.from_numpy(fed.tests[i])))
    return ranked(fed, *(torch.cat(parts) for parts in zip(*found, strict=True))) if found else {}


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

    scores = each(fed, models(), fed.tuning.task)
    scores |= {i: (0.0, scores[i][1]) for i in lost if i in scores}
    return spread("finetuned", scores) | ({"finetuned_lost": lost} if lost else {})


def holders(fed: Federation) -> list[int]:
    """Clients that hold samples: the others have no classes to be judged by."""
    return np.flatnonzero(fed.sizes).tolist()


def each(fed: Federation, models: Any, task: Task) -> dict[int, tuple[float, float]]:
    """Of each client its model's accuracy, and how many samples that stands for."""
    own = fed.tests if len(fed.tests) else None
    judge = partial(expected, fed, task) if own is None else partial(tested, fed, own, task)
    return {i: found for i, w, buffers in models if (found := judge(i, w, buffers)) is not None}


def tested(
    fed: Federation, own: Sequence[np.ndarray], task: Task, i: int, w: Vector, buffers: Record
) -> tuple[float, float] | None:
    """On the client's own test rows, if it has any."""
    if not len(own[i]):
        return None
    right = own_scored(fed, w, buffers, own[i], task).right
    return float(right.double().mean()), len(right)


def expected(fed: Federation, task: Task, i: int, w: Vector, buffers: Record) -> tuple[float, float] | None:
    """The accuracy expected on test data with a client's own class shares, if any of its classes is tested."""
    right = scored(fed, w, buffers, fed.data.test_x, fed.data.test_y, task).right
    found = in_own_mix(right, fed.data.test_y, fed.counted([i]).to(right.device))
    return (float(found.accuracy[0]), float(found.n[0])) if found.n[0] > 0 else None


def spread(name: str, scores: dict[int, tuple[float, float]]) -> dict[str, Any]:
    """Mean over clients, mean over their samples, spread and worst decile over clients."""
    accuracy, n = np.array(list(scores.values())).T
    return {
        f"{name}_accuracy": float(accuracy.mean()),
        f"{name}_pooled": float(accuracy @ n / n.sum()),
        f"{name}_sd": float(accuracy.std()),
        f"{name}_worst_decile": float(np.quantile(accuracy, 0.1)),
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
    index, live = table([work.batches(fed.clients[i], generator(fed.seed, "finetune", t, i)) for i in ids], fed.width)
    chosen = torch.tensor(ids)
    counts = fed.counted(ids).to(device, state.server.w.dtype)
    key = noise.fold(keys(fed.seed, t, chosen), noise.tag("finetune")).to(device)
    own = {name: rows for name, rows in state.memory.rows(ids).items() if name == "private"}
    return Cohort(chosen, key, index, live, {"n": counts.sum(1), "classes": counts}, own)
