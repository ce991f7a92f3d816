"""A data set: samples and labels in memory, with the constants that normalise them, and where named sets come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from holdfast.data.check import (
    as_constants,
    check_classes,
    check_count,
    check_labels,
    check_samples,
    check_shapes,
    check_sizes,
)
from holdfast.data.columns import Column, as_columns
from holdfast.data.named import call_outside, expression, find, nearest, option_problems
from holdfast.errors import Refused

Scale = float | Sequence[float] | None
_PARTS = ("x", "y", "test_x", "test_y")


KINDS = ("classes", "next", "clicks")


class Source(Protocol):
    """Samples that are made when a round wants them: `each` for every one of `clients`."""

    @property
    def clients(self) -> int: ...
    @property
    def each(self) -> int: ...
    def made(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Samples and labels of these clients, one after another."""
        ...


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test samples as they were stored; `prepare` turns rows of them into what a model sees."""

    name: str
    x: Tensor = field(repr=False)  # [n, ...] uint8 or floating
    y: Tensor = field(repr=False)  # [n] int64
    test_x: Tensor = field(repr=False)
    test_y: Tensor = field(repr=False)
    classes: int
    mean: tuple[float, ...]  # one a channel, or one for all, on the raw scale of x
    std: tuple[float, ...]
    kind: str = "classes"  # 'next': characters from characters; 'clicks': y 0 or 1, ranked for every user
    codes: tuple[int, ...] = ()  # x holds whole numbers below these (one for all of a row, or one each): not normalised
    columns: Mapping[str, Column] = field(default_factory=dict[str, Column], repr=False)
    source: Source | None = field(default=None, repr=False)  # makes clients' samples when they come
    present: Tensor | None = field(default=None, repr=False)  # the clients whose made samples x and y hold
    # Tensors beside x, because a captured CUDA graph cannot copy Python numbers to the device.
    _mean: Tensor = field(init=False, repr=False)
    _std: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        per_channel = (-1, *[1] * (len(self.shape) - 1))  # broadcasts from the right, over any leading dimensions
        for name in ("mean", "std"):
            constants = torch.tensor(getattr(self, name), dtype=torch.float64, device=self.x.device)
            object.__setattr__(self, f"_{name}", constants.view(per_channel))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample, (channels, height, width) for images."""
        return tuple(self.x.shape[1:])

    def prepare(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Raw rows -> normalised rows of this floating type; codes stay whole numbers."""
        if self.codes:
            return x.long()
        return (x.to(dtype) - self._mean.to(x.device, dtype)) / self._std.to(x.device, dtype)

    def take(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Samples and labels of these numbers."""
        if self.source is not None and self.present is not None:
            client = index.div(self.source.each, rounding_mode="floor")
            index = torch.searchsorted(self.present, client) * self.source.each + index % self.source.each
        return self.x[index], self.y[index]

    def visiting(self, ids: np.ndarray) -> Dataset:
        """With the samples of these clients, in ascending order, where they have to be made."""
        if self.source is None:
            return self
        x, y = (torch.from_numpy(part).to(self.x.device) for part in self.source.made(ids.tolist()))
        return replace(self, x=x, y=y, present=torch.from_numpy(ids).to(self.x.device))

    def to(self, device: torch.device | str) -> Dataset:
        """The same set on another device: the one copy of a run."""
        return replace(self, **{name: getattr(self, name).to(device) for name in _PARTS})

    @classmethod
    def of(
        cls,
        x: Any,
        y: Any,
        test_x: Any,
        test_y: Any,
        classes: int | None = None,
        mean: Scale = None,
        std: Scale = None,
        name: str = "data",
        kind: str = "classes",
        codes: Sequence[int] = (),
        columns: Mapping[str, Any] | None = None,
        source: Source | None = None,
    ) -> Dataset:
        """From NumPy or torch arrays. Everything is checked, and every problem found is told at once.

        Without `classes`: the largest label plus one. Without `mean` or `std`: those of the training samples, one a
        channel. Images are (n, channels, height, width), tables (n, features). Columns are {"site": ids}, one id for
        each training sample, {"site": (train, test)}, or a Column.
        """
        problems: list[str] = []
        known = check_classes(classes, problems)
        samples, test_samples = (check_samples(n, v, problems, codes) for n, v in (("x", x), ("test_x", test_x)))
        labels, test_labels = check_labels("y", y, known, problems), check_labels("test_y", test_y, known, problems)
        check_sizes("x", samples, "y", labels, problems)
        check_sizes("test_x", test_samples, "test_y", test_labels, problems)
        if not problems and known is None and labels is not None and test_labels is not None:
            check_count((labels, test_labels), problems)
        if samples is not None:
            check_shapes(samples, test_samples, problems)
        held = {}
        if samples is not None and test_samples is not None and columns is not None:
            held = as_columns(columns, len(samples), len(test_samples), problems)
        means, stds = ((0.0,), (1.0,)) if codes else as_constants(samples, mean, std, problems)
        if problems or samples is None or labels is None or test_samples is None or test_labels is None:
            raise Refused(*(f"{name}: {problem}" for problem in problems))
        count = int(known or torch.maximum(labels.max(), test_labels.max()) + 1)
        about = kind, tuple(codes), held, source
        return cls(name, samples, labels, test_samples, test_labels, count, means, stds, *about)


def digits() -> Dataset:
    """scikit-learn's 1797 handwritten digits of 8 x 8 pixels, 1437 to train and 360 to test; ships with the package."""
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as stored:
        images, labels = stored["images"][:, None], stored["labels"].astype(np.int64)
        test = np.isin(np.arange(len(labels)), stored["test"])
    return Dataset.of(images[~test], labels[~test], images[test], labels[test], classes=10, name="digits")


SETS: dict[str, Callable[..., Dataset]] = {"digits": digits}


def own_sets() -> dict[str, Callable[..., Dataset]]:
    """Sets that need no copy in a data folder."""
    from holdfast.data import files
    from holdfast.data.synthetic import synthetic

    return {**SETS, **files.SETS, "synthetic": synthetic}


def load(name: str, options: Mapping[str, Any], data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """The set of this name, or what `package.module:callable` returns when called with the options.

    Names of the catalogue (`holdfast data list`) are looked for in the data folder: `data_dir`, else $HOLDFAST_DATA,
    else the user's cache folder. A callable returns a Dataset, a tuple (x, y, test_x, test_y), or a dict of these names
    and any other argument of `Dataset.of`.
    """
    from holdfast.data import bring
    from holdfast.data.catalog import catalog

    text = expression(name, options)
    if name in catalog():
        return replace(bring.load(name, options, data_dir), name=text)
    own = own_sets()
    if name not in own and ":" not in name:
        known = nearest(name, [*own, *catalog()])
        raise Refused(f"unknown data set '{name}': {known}; your own is named 'package.module:callable'")
    call = find("data set", name, own)
    problems = option_problems(name, call, options)
    if problems:
        raise Refused(*problems)
    made = call(**options) if name in own else call_outside("data set", name, call, options)
    return replace(made, name=text) if name in own else _checked(text, made)


def _checked(text: str, made: object) -> Dataset:
    """What a user's function returned, as a checked data set."""
    if isinstance(made, Dataset):  # built by hand perhaps, so checked like arrays
        fields = (*_PARTS, "classes", "mean", "std", "kind", "codes", "columns")
        return Dataset.of(**{key: getattr(made, key) for key in fields}, name=text)
    if isinstance(made, (tuple, list)) and len(made) == len(_PARTS):
        return Dataset.of(*made, name=text)
    if not isinstance(made, Mapping):
        size = f" of {len(made)}" if isinstance(made, (tuple, list)) else ""
        raise Refused(
            f"data set {text} returned an object of type {type(made).__name__}{size}: "
            "return a Dataset, a tuple (x, y, test_x, test_y) or a dict of these names"
        )
    arrays = dict(made)
    problems = option_problems("Dataset.of", Dataset.of, arrays)
    if problems:
        raise Refused(*(f"data set {text} returned a dict: {problem}" for problem in problems))
    return Dataset.of(**{**arrays, "name": text})
