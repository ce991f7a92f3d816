"""A model is one flat vector; this is the only file that knows parameters by name and shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from holdfast.errors import Refused

Vector = Tensor  # [P]; executors hold [K, P]
Record = dict[str, Tensor]  # named tensors: a part's state, memory, carry or message


@dataclass(frozen=True)
class Layout:
    """Where each named tensor lies in the vector. `length` may exceed their sum: the rest is padding, always zero."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    length: int
    head: tuple[str, ...] = ()  # the last linear layer
    private: tuple[str, ...] = ()  # never leave a client

    @staticmethod
    def of(tensors: Mapping[str, Tensor], head: Iterable[str] = (), multiple: int = 64) -> Layout:
        size = sum(t.numel() for t in tensors.values())
        shapes = tuple(tuple(t.shape) for t in tensors.values())
        return Layout(tuple(tensors), shapes, -(-size // multiple) * multiple, tuple(head))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def size(self) -> int:
        """Trainable scalars, without the padding."""
        return sum(self.sizes)

    @property
    def shared_sizes(self) -> tuple[int, ...]:
        return tuple(n for name, n in zip(self.names, self.sizes, strict=True) if name not in self.private)

    @property
    def private_size(self) -> int:
        return sum(n for name, n in zip(self.names, self.sizes, strict=True) if name in self.private)

    @property
    def shared_size(self) -> int:
        """Scalars that travel and that the server's formulas count."""
        return self.size - self.private_size

    def split(self, w: Vector) -> Record:
        pieces = torch.split(w, [*self.sizes, self.length - self.size])
        return {
            name: piece.view(shape) for name, piece, shape in zip(self.names, pieces[:-1], self.shapes, strict=True)
        }

    def join(self, tensors: Mapping[str, Tensor]) -> Vector:
        pieces = [tensors[name].reshape(-1) for name in self.names]
        if self.length > self.size:
            pieces.append(pieces[0].new_zeros(self.length - self.size))
        return torch.cat(pieces)

    def map(self, f: Callable[[str, Tensor], Tensor], w: Vector) -> Vector:
        """The vector with `f(name, tensor)` in place of every tensor."""
        return self.join({name: f(name, tensor) for name, tensor in self.split(w).items()})

    def without(self, frozen: Iterable[str]) -> Layout:
        kept = [(n, s) for n, s in zip(self.names, self.shapes, strict=True) if n not in set(frozen)]
        multiple = 64 if self.length % 64 == 0 else 1  # as it was padded
        size = sum(math.prod(shape) for _, shape in kept)
        names, shapes = zip(*kept, strict=True)
        head = tuple(name for name in self.head if name in names)
        return replace(self, names=names, shapes=shapes, length=-(-size // multiple) * multiple, head=head)

    def keeping(self, private: Iterable[str]) -> Layout:
        return replace(self, private=tuple(name for name in self.names if name in set(private)))

    def shared(self, w: Vector) -> Vector:
        """The vector with zeros where its entries are private; anything that is not a whole vector passes."""
        if not self.private or w.shape != (self.length,):
            return w
        return self.map(lambda name, t: torch.zeros_like(t) if name in self.private else t, w)

    def travelling(self, w: Vector) -> Tensor:
        """The shared entries alone [shared_size]: no padding, nothing private."""
        tensors = self.split(w)
        return torch.cat([tensors[name].reshape(-1) for name in self.names if name not in self.private])

    def arrived(self, entries: Tensor) -> Vector:
        """The vector of these shared entries, zero elsewhere."""
        shared = iter(torch.split(entries, list(self.shared_sizes)))
        pairs = zip(self.names, self.sizes, strict=True)
        return self.join({n: entries.new_zeros(size) if n in self.private else next(shared) for n, size in pairs})

    def own(self, w: Vector) -> Vector:
        """The private entries alone."""
        tensors = self.split(w)
        return torch.cat([tensors[name].reshape(-1) for name in self.private])

    def place(self, w: Vector, own: Vector) -> Vector:
        """The vector with a client's private entries put back."""
        tensors = self.split(w)
        sizes = [tensors[name].numel() for name in self.private]
        for name, piece in zip(self.private, torch.split(own, sizes), strict=True):
            tensors[name] = piece.view(tensors[name].shape)
        return self.join(tensors)


def meant(layout: Layout, layers: str, part: str) -> tuple[str, ...]:
    """The tensors that an option names: 'head', or beginnings of names separated by commas; some, and not all."""
    starts = tuple(word.strip() for word in layers.split(","))
    names = layout.head if layers == "head" else tuple(n for n in layout.names if n.startswith(starts))
    if not names or set(names) == set(layout.names):
        what = "no tensor" if not names else "every tensor, so nothing is learned together,"
        raise Refused(f"{part}(layers={layers!r}) means {what} of the model; it has {', '.join(layout.names)}")
    return names


def mapped(f: Callable[..., Any], *trees: Any) -> Any:
    """`f` on the tensors of equally built dictionaries and tuples."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: mapped(f, *(tree[key] for tree in trees)) for key in cast(dict[str, Any], first)}
    if isinstance(first, tuple):
        parts = [mapped(f, *leaves) for leaves in zip(*trees, strict=True)]
        return type(cast(Any, first))(*parts) if hasattr(cast(Any, first), "_fields") else tuple(parts)
    return f(*trees)


def where(condition: Tensor, new: Any, old: Any) -> Any:
    """Leaf by leaf."""
    return mapped(partial(torch.where, condition), new, old)


def repeated(tree: Any, count: int) -> Any:
    """A stack of equal rows, without copies."""

    def expand(t: Tensor) -> Tensor:
        return t.expand(count, *t.shape)

    return mapped(expand, tree)


def packed(record: Record, like: Tensor) -> Tensor:
    """The floating tensors of a record as one vector, for a table; `like` gives its type."""
    return torch.cat([like.new_zeros(0), *(t.reshape(-1) for t in record.values() if t.is_floating_point())])


def unpacked(vector: Tensor, like: Record) -> Record:
    """The record again; what does not float is as in `like`."""
    found, place = dict(like), 0
    for name, t in like.items():
        if t.is_floating_point():
            found[name] = vector[place : place + t.numel()].view(t.shape)
            place += t.numel()
    return found


def leaves(tree: Any) -> list[Tensor]:
    found: list[Tensor] = []
    mapped(found.append, tree)
    return found


def nbytes(layout: Layout, tree: Any, private: bool = False) -> int:
    """Bytes of what has to be sent or kept: no padding, and private entries only where they are kept."""
    size = layout.size if private else layout.shared_size
    return sum((size if t.shape == (layout.length,) else t.numel()) * t.element_size() for t in leaves(tree))
