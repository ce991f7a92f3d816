"""The moments of a round that a part can fill, and what it sees there: a `Step` on a client, a `Round` on the server.

Each slot is called from exactly one line of `round.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from holdfast import noise
from holdfast.errors import Refused
from holdfast.vector import Layout, Record, Vector, packed

if TYPE_CHECKING:
    from holdfast.task import Batch, Output, Task


ABSENT: Any = None  # stands where a value does not exist at this moment of the round


@dataclass(frozen=True)
class Step:
    """All that a client hook may see. `mem`, `down` and `carry` are the part's own."""

    task: Task
    w: Vector  # where the client stands (in Loss: the point being differentiated)
    start: Vector  # where its local run began, after Open
    anchor: Vector  # what the server sent
    lr: Tensor
    count: Tensor  # local steps done; at least 1 in Close
    round: Tensor
    source: Tensor  # random key of this client and round
    card: Record  # n, classes [C]
    buffers: Record
    sent: Record  # the buffers that came with the anchor
    batch: Batch = ABSENT
    out: Output = ABSENT
    data: Vector = ABSENT  # the data gradient after Transform
    stiffness: Tensor = ABSENT  # sum of A over the terms A (w - a)
    mem: Record = ABSENT
    down: Record = ABSENT
    carry: Record = ABSENT
    span: Tensor = ABSENT  # in Close: the steps in units of one plain step; momentum makes steps longer
    diff: Any = ABSENT  # how this executor differentiates; `grad` is for parts
    tag: int = 0

    @property
    def key(self) -> Tensor:
        """Random numbers of this client, round, step and part."""
        return noise.fold(self.source, self.count.long(), self.tag)

    @property
    def layout(self) -> Layout:
        return self.task.layout

    def forward(self, w: Vector, buffers: Record) -> Output:
        """Another model on the same batch, as a teacher: evaluation mode, with its own buffers."""
        return self.task.forward(w, buffers, self.batch)

    def stage(self, w: Vector, x: Tensor) -> Tensor:
        """The last stage of a model at w alone, on another input."""
        return self.task.stage(w, self.buffers, self.batch, x)

    def grad(self, loss: Callable[[Vector], Tensor], at: Vector) -> Vector:
        """The gradient of a part's own loss; one more pass."""
        return self.diff(lambda w: (loss(w), {}), at)[0]

    def data_loss(self, w: Vector) -> Tensor:
        """Of this batch at another point, in training mode with the buffers that came with the anchor."""
        # A module writes statistics into what it is given, so under vmap every lane needs its own.
        sent = {name: torch.where(self.count >= 0, b, self.buffers[name]) for name, b in self.sent.items()}
        return self.task.loss(w, sent, self.batch, lambda: self.key)[0]


@dataclass(frozen=True)
class Round:
    """All that a server hook may see. Stacks have a row a client, in ascending id; `up` and `st` are the part's own."""

    task: Task
    w: Vector  # the server's, before the round
    cast: Vector  # the point that was sent; deltas are measured from it
    lr: Tensor
    round: Tensor
    source: Tensor  # random key of this round
    ids: Tensor  # [K]
    cards: Record  # n, steps, span, loss [K], classes [K, C]
    live: Tensor  # [K] bool: clients that trained
    cohort: Tensor  # their number
    clients: Tensor  # the size of the population
    deltas: Tensor  # [K, P], before Merge; zero rows for clients that did not train
    buffers: Record = ABSENT  # of the new model: the clients', averaged
    proxy: Batch = ABSENT  # labelled samples that the server holds, if any
    weights: Tensor = ABSENT  # [K], sum 1; in Weigh: those that hold by default, n or ones
    up: Record = ABSENT
    st: Record = ABSENT
    tag: int = 0

    @property
    def key(self) -> Tensor:
        """Random numbers of this round and part."""
        return noise.fold(self.source, self.tag)

    @property
    def layout(self) -> Layout:
        return self.task.layout

    @property
    def mean(self) -> Vector:
        return self.deltas.sum(0) / self.cohort.clamp(min=1)

    @property
    def weighted(self) -> Vector:
        return self.weights @ self.deltas

    def proxy_loss(self, w: Vector) -> Tensor:
        """Of a model on the server's own samples, in training mode."""
        if self.proxy is None:
            raise Refused("a part learns on samples that the server holds, and there are none; give --proxy 0.02")
        return self.task.loss(w, self.buffers, self.proxy, lambda: self.key)[0]

    def reduce(self, how: str, stack: Tensor) -> Tensor:
        """Over clients: 'mean' (plain), 'weighted' or 'sum'. Clients that did not train sent zeros."""
        if how == "weighted":
            return torch.tensordot(self.weights, stack, 1)
        total = stack.sum(0)
        return total if how == "sum" else total / self.cohort.clamp(min=1)


Init = Callable[[Any], Tensor]  # from a Start (memory, state) or a Step (carry)


@dataclass(frozen=True)
class Start:
    """What an initialiser may see of the run."""

    w: Vector
    buffers: Record
    clients: int
    part: Any  # whose table is being made, for its options


def zeros(origin: Start | Step) -> Tensor:
    return torch.zeros_like(origin.w)


def same(origin: Start | Step) -> Tensor:
    return origin.w.clone()


def same_buffers(origin: Start | Step) -> Tensor:
    """The floating buffers as one vector."""
    return packed(origin.buffers, origin.w)


def each(origin: Start) -> Tensor:
    """A number a client, for the server."""
    return origin.w.new_zeros(origin.clients)


def scalar(value: float) -> Init:
    return lambda origin: torch.full((), value, dtype=origin.w.dtype, device=origin.w.device)


def remembered(name: str) -> Init:
    """A carry that starts from the client's memory."""
    return lambda step: step.mem[name]


@dataclass(frozen=True)
class When:
    """An entry that is kept only where an option has one of these values."""

    option: str
    values: tuple[object, ...]
    init: Init


Entries = Mapping[str, Init | When]


class Slot(ABC):
    name: ClassVar[str]
    tag: ClassVar[int]  # the name as a number, for random keys


class Cast(Slot):
    @abstractmethod
    def cast(self, w: Vector, st: Record) -> tuple[Vector, Record]:
        """Before the round: the point to send, and what goes with it."""


class Open(Slot):
    @abstractmethod
    def open(self, s: Step) -> Vector:
        """Where the client starts."""


class Loss(Slot):
    @abstractmethod
    def loss(self, s: Step) -> Tensor:
        """Added to the data loss."""


class Ascend(Slot):
    @abstractmethod
    def ascend(self, grad: Callable[[], Vector], carry: Record, s: Step) -> tuple[Vector, Record]:
        """The perturbation at which the gradient is taken; each call of `grad` costs one pass."""


class Perturb(Slot):
    @abstractmethod
    def perturb(self, e: Vector, s: Step) -> Vector:
        """Changes the perturbation."""


class Transform(Slot):
    @abstractmethod
    def transform(self, g: Vector, s: Step) -> Vector:
        """Changes the data gradient, and nothing but the data gradient."""


class Correct(Slot):
    stiffness: ClassVar[str] = ""  # the option A of a term A (w - a)

    @abstractmethod
    def correct(self, s: Step) -> Vector:
        """Added to the gradient: what is not data."""


class Descend(Slot):
    rank: ClassVar[int] = 0  # clip 1, decay 2, momentum 3, local_adam 4: the order of torch.optim

    @abstractmethod
    def descend(self, g: Vector, carry: Record, s: Step) -> tuple[Vector, Record]:
        """From the gradient to the step."""

    def span(self, count: Tensor) -> Tensor:
        """How far `count` steps go under a constant gradient, in plain steps."""
        return count


class Close(Slot):
    @abstractmethod
    def close(self, delta: Vector, s: Step) -> tuple[Vector, Record, Record]:
        """After the last step: the update to send, extras for the server, memory to keep."""


class Weigh(Slot):
    @abstractmethod
    def weigh(self, r: Round) -> Tensor:
        """How much each client counts [K]; need not sum to one."""


class Merge(Slot):
    counts: ClassVar[bool] = False  # whether every client counts once, whatever its weight

    @abstractmethod
    def merge(self, deltas: Tensor, r: Round) -> Tensor:
        """[K, P] to be averaged, or [P]: the average itself."""


class Update(Slot):
    @abstractmethod
    def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
        """From the average to the server's step, and the part's new state."""


class Private(Slot):
    @abstractmethod
    def private(self, layout: Layout) -> tuple[str, ...]:
        """Names of the tensors that never leave a client."""


class Frozen(Slot):
    @abstractmethod
    def frozen(self, layout: Layout) -> tuple[str, ...]:
        """Names of the tensors that nobody trains: they leave the vector."""


def meant(layout: Layout, layers: str, part: str) -> tuple[str, ...]:
    """The tensors that an option names: 'head', or beginnings of names separated by commas; some, and not all."""
    starts = tuple(word.strip() for word in layers.split(","))
    names = layout.head if layers == "head" else tuple(n for n in layout.names if n.startswith(starts))
    if not names or set(names) == set(layout.names):
        what = "no tensor" if not names else "every tensor, so nothing is learned together,"
        raise Refused(f"{part}(layers={layers!r}) means {what} of the model; it has {', '.join(layout.names)}")
    return names


SLOTS: tuple[type, ...] = (
    Frozen, Private, Cast, Open, Loss, Ascend, Perturb, Transform, Correct, Descend, Close, Weigh, Merge, Update,
)  # fmt: skip
SINGLE = (Open, Ascend, Weigh, Merge, Private, Frozen)
ORDERED = (Cast, Transform, Perturb, Close, Update)
