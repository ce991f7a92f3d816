"""From the texts of a run to what they name: method, data, split and model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import nn

from holdfast.data import sets, splits
from holdfast.data.dealing import Ranges, Samples
from holdfast.data.normal import normalised
from holdfast.data.sets import Dataset
from holdfast.data.splits import Split
from holdfast.errors import Refused
from holdfast.method import Method
from holdfast.models import zoo
from holdfast.options import attempt, text_of
from holdfast.text import made, one, parse

if TYPE_CHECKING:
    from holdfast.experiment import Run


def wanted_method(run: Run) -> Method:
    if isinstance(run.method, Method):
        return run.method
    return parse(text_of(run.method, "method"))


def with_server_lr(run: Run) -> Method:
    method = wanted_method(run)
    return method if run.server_lr == 1 else method + made("server", {"lr": float(run.server_lr)})


def wanted_data(run: Run) -> Dataset:
    if isinstance(run.data, Dataset):
        return normalized(run.data, run.normalize)
    call = one(text_of(run.data, "data set"), "data set")
    return normalized(sets.load(call.name, call.options, run.data_dir or None), run.normalize)


def normalized(data: Dataset, name: str) -> Dataset:
    """With the constants of a code base in place of those of its own training samples."""
    if name == "data":
        return data
    mean, std = normalised(name)
    if data.codes or len(mean) not in (1, *data.shape[:1]):
        raise Refused(f"normalize={name} has {len(mean)} channels and {data.name} has samples of shape {data.shape}")
    return replace(data, mean=mean, std=std)


def wanted_split(run: Run, data: Dataset) -> Split:
    if isinstance(run.split, Split):
        return within(run.split, data)
    text = text_of(run.split, "split")
    if text.endswith(".json"):
        return within(Split.load(text), data)
    call = one(text, "split")
    return splits.make(call.name, call.options, Samples.of(data), run.seed, text)


def within(split: Split, data: Dataset) -> Split:
    if isinstance(split.clients, Ranges) or data.source:
        if split.clients != Samples.of(data).source:
            raise Refused(f"split {split.text} is not that of {data.name}, whose samples are made with their client")
        return split
    largest = max((int(rows.max()) for rows in split.clients if len(rows)), default=-1)
    if largest >= len(data.y):
        raise Refused(f"the split names sample {largest}, and {data.name} has {len(data.y)}; it is of another data set")
    many = len(data.y if split.tests_from == "train" else data.test_y)
    if max((int(rows.max()) for rows in split.tests if len(rows)), default=-1) >= many:
        raise Refused(f"the split has test rows beyond the {many} of {data.name}; it is of another data set")
    return split


def wanted_model(run: Run, data: Dataset) -> nn.Module:
    if isinstance(run.model, nn.Module):
        return run.model
    call = one(text_of(run.model, "model"), "model")
    return zoo.build(call.name, call.options, data.shape, data.classes, run.seed, data.codes)


def without_data(run: Run) -> list[str]:
    """Where the data is missing, split and model can still be checked for what needs no data."""
    problems: list[str] = []

    def split(text: str) -> None:
        call = one(text, "split")
        splits.check(call.name, call.options)

    def model(text: str) -> None:
        call = one(text, "model")
        zoo.check(call.name, call.options)

    if isinstance(run.split, str) and run.split.endswith(".json"):
        attempt(problems, lambda: Split.load(str(run.split)), "split")
    elif not isinstance(run.split, Split):
        attempt(problems, lambda: split(text_of(run.split, "split")), "split")
    if not isinstance(run.model, nn.Module):
        attempt(problems, lambda: model(text_of(run.model, "model")), "model")
    return problems
