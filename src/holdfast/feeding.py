"""How sample numbers become batches: all that executors, here or elsewhere, need of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.data.augment import Augment, row_keys
from holdfast.data.sets import Dataset
from holdfast.task import Batch


@dataclass(frozen=True, eq=False)
class Feeder:
    data: Dataset  # the training samples alone
    rows: Tensor | None  # all of them, normalised once, where that takes little memory
    augment: Augment
    dtype: torch.dtype

    @staticmethod
    def of(data: Dataset, rows: Tensor | None, augment: Augment, dtype: torch.dtype) -> Feeder:
        x = data.x if rows is None else data.x[:0]
        spare = replace(data, x=x, test_x=data.test_x[:0], test_y=data.test_y[:0], columns={})
        return Feeder(spare, rows, augment, dtype)

    def plain(self, index: Tensor, live: Tensor) -> Batch:
        """Samples as they are, normalised."""
        device = self.data.y.device
        index, live = index.to(device), live.to(device)
        if self.rows is not None:
            return Batch(self.rows[index], self.data.y[index], live)
        x, y = self.data.take(index)
        return Batch(self.data.prepare(x, self.dtype), y, live)

    def __call__(self, index: Tensor, live: Tensor, keys: Tensor, step: int) -> Batch:
        """A training batch. What augmentation makes of a row depends on its client, round, step and place."""
        if not self.augment:
            return self.plain(index, live)
        device = self.data.x.device
        x, y = self.data.take(index.to(device))
        x = self.augment(x, row_keys(keys, step, index.shape[-1]), lambda x: self.data.prepare(x, self.dtype))
        return Batch(x, y, live.to(device))
