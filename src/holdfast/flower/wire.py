"""What goes over the wire: trees of tensors as Flower's named arrays, checked against what must come.

An array is raw NumPy bytes; nothing is pickled, and nothing is read before its name, type, shape and size are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from torch import Tensor

from holdfast.errors import Refused

TREE, TOLD = "tree", "told"  # the two records of a message: tensors, and a few plain values
HEADER = 1024  # bytes that NumPy may write before an array's own
SHOWN = 6


def named(tree: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor of nested dictionaries and named tuples, as 'parts/scaffold/c'."""
    if isinstance(tree, Tensor):
        yield prefix.removesuffix("/"), tree
        return
    branches = tree._asdict() if hasattr(tree, "_asdict") else tree
    for key, value in branches.items():
        yield from named(value, f"{prefix}{key}/")


def packed(tree: Any) -> ArrayRecord:
    return ArrayRecord({name: array(t) for name, t in named(tree)})


def array(t: Tensor) -> Array:
    return Array(np.ascontiguousarray(t.detach().cpu().numpy()).reshape(t.shape))


def unpacked(record: ArrayRecord, like: Any, whose: str) -> Any:
    """The tree that is built like `like`; all that is wrong with what came is told at once."""
    wanted = dict(named(like))
    problems = [f"{whose} sent '{name}', which nobody asked for" for name in record if name not in wanted][:SHOWN]
    problems += [f"{whose} sent no '{name}'" for name in wanted if name not in record][:SHOWN]
    found: dict[str, Tensor] = {}
    for name in [name for name in wanted if name in record]:
        if wrong := claims(record[name], wanted[name]):
            problems.append(f"{whose} sent '{name}' {wrong}")
            continue
        try:
            found[name] = read(record[name], wanted[name])
        except ValueError as error:
            problems.append(f"{whose} sent '{name}' that {error}")
    if problems:
        raise Refused(*problems[: 2 * SHOWN])
    return rebuilt(like, found)


def claims(sent: Array, like: Tensor) -> str:
    """What is wrong with an array by what it says of itself, before a byte of it is read."""
    dtype, shape = str(like.dtype).removeprefix("torch."), tuple(like.shape)
    if sent.dtype != dtype:
        return f"of type {sent.dtype}; it must be {dtype}"
    if tuple(sent.shape) != shape:
        return f"of shape {tuple(sent.shape)}; it must be {shape}"
    most = like.numel() * like.element_size() + HEADER
    return f"of {len(sent.data)} bytes; it can have {most} at most" if len(sent.data) > most else ""


def read(sent: Array, like: Tensor) -> Tensor:
    """The tensor itself, which may still be another than it claimed to be."""
    try:
        found = torch.from_numpy(sent.numpy().copy())
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise ValueError(f"cannot be read: {error}") from error
    if found.dtype != like.dtype or found.shape != like.shape:
        raise ValueError(f"is {found.dtype} {tuple(found.shape)} and claimed to be {like.dtype} {tuple(like.shape)}")
    if found.is_floating_point() and not bool(torch.isfinite(found).all()):
        raise ValueError("is not finite")
    return found.to(like.device)


def rebuilt(like: Any, found: dict[str, Tensor], prefix: str = "") -> Any:
    if isinstance(like, Tensor):
        return found[prefix.removesuffix("/")]
    branches = like._asdict() if hasattr(like, "_asdict") else like
    made = {key: rebuilt(value, found, f"{prefix}{key}/") for key, value in branches.items()}
    return type(like)(**made) if hasattr(like, "_asdict") else made


def content(tree: Any = None, **told: Any) -> RecordDict:
    """A message's content. Without a tree it has plain values only."""
    records = {TREE: packed(tree)} if tree is not None else {}
    return RecordDict({**records, TOLD: ConfigRecord(told)})


def tree(message: Message, like: Any, whose: str) -> Any:
    records = message.content.array_records
    if TREE not in records:
        raise Refused(f"{whose} sent no tensors")
    return unpacked(records[TREE], like, whose)


def value(message: Message, key: str, kind: type, whose: str) -> Any:
    """One plain value of the right type; whole numbers do as floats."""
    found = message.content.config_records.get(TOLD, ConfigRecord()).get(key)
    if kind is float and type(found) is int:
        found = float(found)
    if type(found) is not kind:
        raise Refused(f"{whose} sent {key}={found!r}; it must be a {kind.__name__}")
    if isinstance(found, float) and not math.isfinite(found):
        raise Refused(f"{whose} sent {key}={found}, which is not finite")
    return found


def problem(message: Message) -> str:
    """The reason that an answer gives instead of an answer."""
    found = message.content.config_records.get(TOLD, ConfigRecord()).get("problem")
    return found[:500] if isinstance(found, str) else ""
