"""How the server's model scores: on the test data, by domain, on every client's own test rows, and as a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from holdfast import metrics, noise
from holdfast.kinds import KINDS
from holdfast.task import Batch, Task
from holdfast.vector import Record, Vector

if TYPE_CHECKING:
    from holdfast.simulate import Federation, State

ROWS = 1000  # samples at once
ITEM = 5  # the column of a click's codes that is ranked: user, gender, age, occupation, zip, item, history
GROUPS = ("domain", "corruption")  # columns whose groups have scores of their own


class Scored(NamedTuple):
    """Of every sample: whether it is answered rightly, its loss, and the model's first number."""

    right: Tensor
    loss: Tensor
    first: Tensor


@torch.no_grad()
def scored(
    fed: Federation, w: Vector, buffers: Record, x: Tensor, y: Tensor, task: Task | None = None,
    index: Tensor | None = None,
) -> Scored:  # fmt: skip
    """Of all samples, or of those of an index."""
    kind, found = KINDS[fed.data.kind], list[Scored]()
    for i in range(0, len(y if index is None else index), ROWS):
        at = slice(i, i + ROWS) if index is None else index[i : i + ROWS]
        rows, labels = fed.data.prepare(x[at], w.dtype), y[at]
        live = torch.ones_like(labels, dtype=torch.bool)
        logits = (task or fed.task).forward(w, buffers, Batch(rows, labels, live)).logits
        found.append(Scored(kind.answer(logits) == labels, kind.loss(logits, labels), logits[:, 0]))
    return Scored(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def evaluate(fed: Federation, state: State) -> dict[str, Any]:
    """The figures of one evaluated round."""
    data, server = fed.data, state.server
    every = scored(fed, server.w, server.buffers, data.test_x, data.test_y)
    row = {"accuracy": float(every.right.double().mean()), "loss": float(every.loss.double().mean())}
    for name in GROUPS:
        if name in data.columns and len(data.columns[name].test):
            row |= by_name(name, every.right, data.columns[name].names, data.columns[name].test)
    if len(fed.tests):
        row |= of_clients(fed, server.w, server.buffers, every)
    elif data.source is None and data.kind != "clicks":  # where nobody has test rows of its own
        row |= told("client", metrics.in_own_mix(every.right, data.test_y, fed.mixes.to(every.right.device)))
    return row | (ranked(fed, every.first) if data.kind == "clicks" else {})


def by_name(name: str, right: Tensor, names: tuple[str, ...], owner: np.ndarray) -> dict[str, Any]:
    """Accuracy of every domain, and their mean, in which each counts the same."""
    found = metrics.by_group(right, torch.from_numpy(owner).to(right.device), len(names))
    each = {word: float(a) for word, a, n in zip(names, found.accuracy, found.n, strict=True) if n}
    return {f"{name}_accuracy": found.mean, f"{name}s": each}


def of_clients(fed: Federation, w: Vector, buffers: Record, every: Scored) -> dict[str, Any]:
    """The one model on every client's own test rows, which are scored already where they are rows of the test data."""
    owner = torch.from_numpy(np.repeat(np.arange(len(fed.tests)), [len(rows) for rows in fed.tests]))
    rows = np.concatenate(list(fed.tests))
    if fed.tests_from == "train":
        right = own_scored(fed, w, buffers, rows).right
    else:
        right = every.right[torch.from_numpy(rows).to(every.right.device)]
    return told("client", metrics.by_group(right, owner.to(right.device), len(fed.tests)))


def own_scored(fed: Federation, w: Vector, buffers: Record, rows: np.ndarray, task: Task | None = None) -> Scored:
    """Of test rows of clients: of the test data, or held out of the training data."""
    x, y = (fed.data.x, fed.data.y) if fed.tests_from == "train" else (fed.data.test_x, fed.data.test_y)
    return scored(fed, w, buffers, x, y, task, torch.from_numpy(rows).to(y.device))


def told(name: str, found: metrics.Groups) -> dict[str, Any]:
    """`pooled`: correct over samples, all clients together."""
    row = {"accuracy": found.mean, "pooled": found.pooled, "sd": found.sd, "worst_decile": found.worst_decile}
    return {f"{name}_{key}": value for key, value in row.items()}


def ranked(fed: Federation, scores: Tensor, rows: Tensor | None = None) -> dict[str, Any]:
    """Every user's positive item among its candidates: AUC, HR@10, NDCG@10, also as FedEve prints it.

    `scores` are of these test rows, of all if none are named.
    """
    rows = torch.arange(len(scores)) if rows is None else rows
    users = torch.from_numpy(fed.data.columns["user"].test)[rows].to(scores.device)
    rows = rows.to(scores.device)
    key = noise.fold(torch.tensor(fed.seed & 0xFFFFFFFF, device=scores.device), noise.tag("ranking"))
    found = metrics.ranking(scores, users, fed.data.test_x[rows, ITEM], fed.data.test_y[rows], key)
    return {"auc": found.auc, "hr10": found.hit_ratio, "ndcg10": found.ndcg, "ndcg10_printed": found.ndcg_printed}
