"""What is checked in arrays that come from outside: each function adds plain sentences to `problems`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


def check_samples(name: str, value: Any, problems: list[str], codes: Sequence[int] = ()) -> Tensor | None:
    """Samples as a uint8 or floating tensor, or as whole numbers; None, with the problem noted, if they cannot be."""
    x = _tensor(name, value, problems)
    if x is None:
        return None
    if x.ndim < 2:
        problems.append(f"{name} has shape {tuple(x.shape)}: the first dimension counts samples, so give at least two")
        return None
    if x.is_complex():
        problems.append(f"{name} is complex: give real numbers, for example its absolute value")
        return None
    if 0 in x.shape[1:]:
        problems.append(f"{name} has shape {tuple(x.shape)}: a sample without values")
        return None
    if codes:
        return x if _are_codes(name, x, codes, problems) else None
    if not x.is_floating_point():
        return x if x.dtype == torch.uint8 else x.to(torch.float32)
    bad = ~torch.isfinite(x)
    count = int(bad.sum())
    if count:
        first = [int(i) for i in bad.nonzero()[0]]
        problems.append(f"{name} holds NaN or infinite values ({count}, the first at index {first}): drop or fill them")
    return x


def _are_codes(name: str, x: Tensor, codes: Sequence[int], problems: list[str]) -> bool:
    """Whether x holds whole numbers from 0 to below `codes`, one for all numbers of a row or one for each."""
    if x.is_floating_point() or x.dtype == torch.bool or len(codes) not in (1, *x.shape[1:2]):
        problems.append(
            f"{name} of {x.dtype} and shape {tuple(x.shape)} does not hold codes below {tuple(codes)}: give whole "
            "numbers, and one size for all of a row or one each"
        )
        return False
    sizes = torch.tensor(tuple(codes))
    # The ends first: masks of all of a large set would be several times its size.
    if len(x) and bool(((x.amin(0) < 0) | (x.amax(0) >= sizes)).any()):
        outside = (x < 0) | (x >= sizes)
        first = [int(i) for i in outside.nonzero()[0]]
        problems.append(
            f"{name} holds codes out of range (the first at index {first}): they go from 0 to below {codes}"
        )
        return False
    return True


def check_labels(name: str, value: Any, classes: int | None, problems: list[str]) -> Tensor | None:
    """Labels as int64; None, with the problem noted, when they are not class numbers."""
    y = _tensor(name, value, problems)
    if y is None:
        return None
    if y.ndim != 1:
        problems.append(f"{name} has shape {tuple(y.shape)}: labels are one number a sample, try {name}.reshape(-1)")
        return None
    if y.is_complex() or (y.is_floating_point() and not bool((torch.isfinite(y) & (y == y.floor())).all())):
        problems.append(f"{name} holds labels that are no integers: class labels are 0, 1, 2, ...")
        return None
    y = y.to(torch.int64)
    allowed = "0, 1, 2, ..." if classes is None else f"0 to {classes - 1} (classes={classes})"
    outside = (y < 0) if classes is None else (y < 0) | (y >= classes)
    if bool(outside.any()):
        first = int(outside.nonzero()[0])
        problems.append(
            f"{name} holds labels out of range ({int(outside.sum())}, the first is {int(y[first])} at index {first}): "
            f"labels are {allowed}"
        )
    return y


def check_count(labels: Sequence[Tensor], problems: list[str]) -> None:
    """Where no one says how many classes there are, the largest label does. Thousands for few samples are none."""
    top, many = max(int(y.max()) for y in labels), sum(len(y) for y in labels)
    if top >= max(many, 1000):
        said = f"y holds labels up to {top}, and there are {many} samples: labels are 0, 1, 2, ... without gaps"
        problems.append(f"{said}; number the classes anew, or say classes=")


def check_classes(classes: object, problems: list[str]) -> int | None:
    """The number of classes, where one is given."""
    if classes is None or (isinstance(classes, int) and not isinstance(classes, bool) and classes >= 1):
        return classes
    problems.append(f"classes is {classes!r}: give a whole number, 1 or more")
    return None


def check_sizes(samples: str, x: Tensor | None, labels: str, y: Tensor | None, problems: list[str]) -> None:
    """As many labels as samples, and at least one."""
    empty = [name for name, rows in ((samples, x), (labels, y)) if rows is not None and len(rows) == 0]
    problems += [f"{name} is empty: at least one sample is needed" for name in empty]
    if not empty and x is not None and y is not None and len(x) != len(y):
        many = f"{samples} has {len(x)} samples but {labels} has {len(y)} labels"
        problems.append(f"{many}: every sample needs one label")


def check_shapes(x: Tensor, test_x: Tensor | None, problems: list[str]) -> None:
    """One sample shape, one number type, and channels in front."""
    if test_x is not None and x.shape[1:] != test_x.shape[1:]:
        problems.append(
            f"x has samples of shape {tuple(x.shape[1:])} but test_x of {tuple(test_x.shape[1:])}: make them the same"
        )
    elif test_x is not None and x.dtype != test_x.dtype:
        problems.append(f"x is {x.dtype} but test_x is {test_x.dtype}: one scale is needed, convert one of them")
    if x.ndim == 4 and x.shape[3] in (1, 3, 4) and x.shape[1] == x.shape[2] > 4:
        problems.append(
            f"x has samples of shape {tuple(x.shape[1:])}, which looks like channels last: "
            "use x.transpose(0, 3, 1, 2), and the same for test_x"
        )


def as_constants(
    x: Tensor | None, mean: object, std: object, problems: list[str]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The given constants, or those of the training samples where none are given."""
    given = [_floats(name, value, x, problems) for name, value in (("mean", mean), ("std", std))]
    if given[1] is not None and any(v <= 0 for v in given[1]):
        problems.append(f"std is {given[1]}: every value must be above 0, use 1 for a constant channel")
    if x is None or problems or None not in given:
        return given[0] or (), given[1] or ()
    measured = _statistics(x)
    return given[0] or measured[0], given[1] or measured[1]


def _floats(name: str, value: Any, x: Tensor | None, problems: list[str]) -> tuple[float, ...] | None:
    if value is None:
        return None
    listed = value.tolist() if isinstance(value, (np.ndarray, np.generic, Tensor)) else value
    items = list(listed) if isinstance(listed, Sequence) and not isinstance(listed, str) else [listed]
    if not items or not all(isinstance(v, (int, float)) and math.isfinite(v) for v in items):
        problems.append(f"{name} is {value!r}: give one finite number, or one a channel")
        return None
    if x is not None and len(items) not in (1, x.shape[1]):
        problems.append(f"{name} has {len(items)} values for {x.shape[1]} channels: give 1 or {x.shape[1]}")
        return None
    return tuple(float(v) for v in items)


def _statistics(x: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and population deviation of each channel, a constant channel getting deviation 1."""
    means, stds = [], []
    for channel in range(x.shape[1]):
        mean, deviation = _of_bytes(x[:, channel]) if x.dtype == torch.uint8 else _of_numbers(x[:, channel])
        means.append(_nine_digits(mean))
        stds.append(_nine_digits(deviation) or 1.0)
    return tuple(means), tuple(stds)


def _of_numbers(values: Tensor) -> tuple[float, float]:
    values = values.to(torch.float64)
    mean = float(values.mean())
    return mean, float((values - mean).square().mean().sqrt())


def _of_bytes(values: Tensor) -> tuple[float, float]:
    """From how often each of the 256 values occurs, some rows at a time: a mapped set is never in memory whole."""
    counts = np.zeros(256, np.int64)
    for rows in values.split(max(1, (1 << 24) // max(values[0].numel(), 1))):
        counts += np.bincount(rows.reshape(-1).cpu().numpy(), minlength=256)
    levels = np.arange(256)
    mean = float((counts * levels).sum() / counts.sum())
    return mean, math.sqrt(float((counts * (levels - mean) ** 2).sum() / counts.sum()))


def _nine_digits(value: float) -> float:
    """More than float32 resolves, and too few to show in which order, so with how many threads, a sum was taken."""
    return float(f"{value:.9g}")


def _tensor(name: str, value: Any, problems: list[str]) -> Tensor | None:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        array = np.ascontiguousarray(value)  # torch takes no negative strides
        array = array if array.flags.writeable and array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        problems.append(f"{name} cannot be read as an array of numbers ({error}): give a NumPy array or a tensor")
        return None
