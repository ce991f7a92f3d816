"""Whether a model and a data set suit each other: told before the first round, with the model's name."""

from __future__ import annotations

import torch

from holdfast.check import reason
from holdfast.data.sets import Dataset
from holdfast.errors import Refused
from holdfast.kinds import KINDS
from holdfast.task import Batch, Task


def fitting(task: Task, data: Dataset, name: str) -> Batch:
    """Two rows of the data, which the model has shown that it can take."""
    y = data.y[:2]
    rows = Batch(data.prepare(data.x[:2], task.start.dtype), y, torch.ones_like(y, dtype=torch.bool))
    tensors = {**task.layout.split(task.start), **task.buffers}
    if broken := [key for key, t in tensors.items() if not bool(torch.isfinite(t).all())]:
        raise Refused(f"model {name} begins with values that are not finite in {', '.join(broken[:4])}; mend them")
    try:
        logits = task.forward(task.start, task.buffers, rows).logits
    except Refused as refused:
        raise Refused(f"model {name}: {refused}") from refused
    except Exception as error:
        raise Refused(
            f"model {name} cannot take samples of shape {data.shape}: {reason(error)}; adapt one to the other, and "
            "return logits, or (logits, features)"
        ) from error
    wanted = 1 if KINDS[data.kind].single else data.classes
    many = logits.shape[1] if logits.dim() == 2 and len(logits) == len(y) and logits.is_floating_point() else 0
    if many != 1 if wanted == 1 else many < wanted:
        raise Refused(
            f"model {name} returns logits of shape {tuple(logits.shape)} and type {logits.dtype} for {len(y)} samples, "
            f"and {data.name} wants {wanted} floating numbers a sample; "
            + ("take din, or another model with one number" if wanted == 1 else "its last layer must have one a class")
        )
    return rows
