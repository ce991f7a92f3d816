"""A learning problem as pure functions of a flat vector. A network is one case; any differentiable loss is another."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from holdfast.errors import Refused
from holdfast.layers import KEY, LIVE, prepared
from holdfast.vector import Layout, Record, Vector


class Batch(NamedTuple):
    """Rows of samples; those that are not live are padding, and every mean leaves them out."""

    x: Tensor
    y: Tensor
    live: Tensor  # [B] bool

    def mean(self, values: Tensor) -> Tensor:
        """Of one value a row, over live rows."""
        return torch.where(self.live, values, 0).sum() / self.live.sum().clamp(min=1)

    def pairs(self, values: Tensor) -> Tensor:
        """Of one value a pair of rows [B, B], over pairs of two different live rows."""
        both = self.live[:, None] & self.live[None, :]
        both = both & ~torch.eye(len(values), dtype=torch.bool, device=values.device)
        return torch.where(both, values, 0).sum() / both.sum().clamp(min=1)


class Output(NamedTuple):
    logits: Tensor
    features: Tensor | None = None  # the input of the last linear layer
    stage: tuple[Tensor, Tensor] | None = None  # what goes into the model's last stage, and what comes out

    def hidden(self, part: str) -> Tensor:
        if self.features is None:
            raise Refused(f"'{part}' needs features, and the model has no linear layer whose input they would be; "
                          f"drop '{part}' or return (logits, features) from the model")  # fmt: skip
        return self.features


class Task(ABC):
    """What the rounds need to know of a problem."""

    layout: Layout
    start: Vector
    buffers: Record

    @abstractmethod
    def loss(
        self, w: Vector, buffers: Record, batch: Batch, key: Callable[[], Tensor]
    ) -> tuple[Tensor, Output, Record]:
        """Mean loss over live rows in training mode, the output, the buffers afterwards."""

    @abstractmethod
    def forward(self, w: Vector, buffers: Record, batch: Batch) -> Output:
        """The output in evaluation mode."""

    def stage(self, w: Vector, buffers: Record, batch: Batch, x: Tensor) -> Tensor:
        """The last stage alone, in training mode."""
        raise Refused("this problem has no last stage; only a model has, which names it: last_stage = ('layer4',)")

    @abstractmethod
    def having(self, **changes: Any) -> Task:
        """The same task with another layout, start or buffers."""

    @abstractmethod
    def on(self, device: torch.device | str) -> Task:
        """The same task on another device."""

    @abstractmethod
    def without(self, frozen: tuple[str, ...]) -> Task:
        """The same task with tensors of these names held at their start and out of the vector."""

    def keeping(self, private: tuple[str, ...]) -> Task:
        """The same task with tensors of these names kept by the clients."""
        return self.having(layout=self.layout.keeping(private)) if private else self

    @staticmethod
    def of(
        problem: nn.Module | Callable[[Vector, Batch], Tensor],
        criterion: Callable[[Tensor, Tensor], Tensor] | None = None,
        *,
        layout: Layout | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Task:
        """From a module (and a loss per sample: [B, ...], [B] -> [B]), or from a loss of a vector and a batch."""
        if isinstance(problem, nn.Module):
            return module_task(problem, criterion or cross_entropy, dtype)
        if layout is None:
            raise Refused("a loss given as a function needs layout=Layout.of({name: tensor})")
        return FunctionTask(problem, layout, torch.zeros(layout.length, dtype=dtype))


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """torch's, per sample, in the two steps that vmap maps fastest."""
    return -logits.log_softmax(1).gather(1, y[:, None]).squeeze(1)


@dataclass(frozen=True, eq=False)
class FunctionTask(Task):
    function: Callable[[Vector, Batch], Tensor]
    layout: Layout
    start: Vector
    buffers: Record = field(default_factory=dict[str, Tensor])

    def loss(
        self, w: Vector, buffers: Record, batch: Batch, key: Callable[[], Tensor]
    ) -> tuple[Tensor, Output, Record]:
        return self.function(w, batch), Output(w.new_zeros(len(batch.live), 1)), buffers

    def forward(self, w: Vector, buffers: Record, batch: Batch) -> Output:
        return Output(w.new_zeros(len(batch.live), 1))

    def having(self, **changes: Any) -> Task:
        return replace(self, **changes)

    def on(self, device: torch.device | str) -> Task:
        return replace(self, start=self.start.to(device))

    def without(self, frozen: tuple[str, ...]) -> Task:
        if not frozen:
            return self
        whole, layout, held = self.layout, self.layout.without(frozen), self.layout.split(self.start)

        def function(w: Vector, batch: Batch) -> Tensor:
            fixed = {name: held[name].to(w.device) for name in frozen}
            return self.function(whole.join({**fixed, **layout.split(w)}), batch)

        return replace(self, function=function, layout=layout, start=layout.join(held))


@dataclass(frozen=True, eq=False)
class ModuleTask(Task):
    training: nn.Module
    evaluating: nn.Module
    criterion: Callable[[Tensor, Tensor], Tensor]
    layout: Layout
    start: Vector
    buffers: Record
    specials: tuple[tuple[str, ...], tuple[str, ...]]  # buffers that stand for the live rows and the key

    def loss(
        self, w: Vector, buffers: Record, batch: Batch, key: Callable[[], Tensor]
    ) -> tuple[Tensor, Output, Record]:
        buffers = {name: b.clone() for name, b in buffers.items()}  # layers write their statistics into these
        live, keys = self.specials
        given = {**dict.fromkeys(live, batch.live), **(dict.fromkeys(keys, key()) if keys else {})}
        out = call(self.training, {**self.layout.split(w), **buffers, **given}, batch.x)
        return batch.mean(self.criterion(out.logits, batch.y)), out, buffers

    def forward(self, w: Vector, buffers: Record, batch: Batch) -> Output:
        return call(self.evaluating, {**self.layout.split(w), **buffers}, batch.x)

    def stage(self, w: Vector, buffers: Record, batch: Batch, x: Tensor) -> Tensor:
        tensors = {**self.layout.split(w), **{n: b.clone() for n, b in buffers.items()}}
        tensors |= dict.fromkeys(self.specials[0], batch.live)
        for name in stage_of(self.training):
            own = {n.removeprefix(f"{name}."): t for n, t in tensors.items() if n.startswith(f"{name}.")}
            x = cast(Tensor, functional_call(self.training.get_submodule(name), own, (x,)))
        cast("_Tap", self.training.hf_stage).clear()
        return x

    def having(self, **changes: Any) -> Task:
        return replace(self, **changes)

    def on(self, device: torch.device | str) -> Task:
        modules = {kind: copy.deepcopy(getattr(self, kind)).to(device) for kind in ("training", "evaluating")}
        buffers = {name: b.to(device) for name, b in self.buffers.items()}
        return replace(self, **modules, start=self.start.to(device), buffers=buffers)

    def without(self, frozen: tuple[str, ...]) -> Task:
        if not frozen:
            return self
        layout = self.layout.without(frozen)  # what a call does not find in the vector, the modules hold as it began
        return replace(self, layout=layout, start=layout.join(self.layout.split(self.start)))


class _Tap(list[Tensor]):
    """Catches the input of a layer, or its output, during one call."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], out: Tensor | None = None) -> None:
        self.append(args[0] if out is None else out)


def stage_of(module: nn.Module) -> tuple[str, ...]:
    """The submodules, called one after another, that the model names as its last stage."""
    return tuple(getattr(module, "last_stage", ()))


def call(module: nn.Module, tensors: Record, x: Tensor) -> Output:
    tap, ends = (cast("_Tap | None", getattr(module, name, None)) for name in ("hf_tap", "hf_stage"))
    for caught in (tap, ends):
        if caught:  # of a call that ended in an error
            caught.clear()
    out: Any = functional_call(module, tensors, (x,), tie_weights=getattr(module, "hf_tied", True))
    features = tap.pop() if tap else None
    stage = (ends.pop(0), ends.pop(0)) if ends else None
    given = cast("tuple[Any, ...]", out if isinstance(out, tuple) else (out, features))
    logits, own = cast("tuple[Any, Any]", (*given, None, None)[:2])
    if not isinstance(logits, Tensor) or not isinstance(own, Tensor | None):
        kinds = ", ".join(type(one).__name__ for one in given)
        what = f"a tuple of {kinds or 'nothing'}" if isinstance(out, tuple) else f"a {type(out).__name__}"
        raise Refused(f"the model returns {what}; return logits, or (logits, features), as tensors")
    return Output(logits, own, stage)


def module_task(module: nn.Module, criterion: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype) -> ModuleTask:
    parameters = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    kinds = {p.dtype for p in parameters.values()}
    if not parameters or any(not kind.is_floating_point for kind in kinds):
        raise Refused(f"the model has {len(parameters)} trainable tensors of types {sorted(map(str, kinds))}; "
                      "it needs floating ones, for they become one vector")  # fmt: skip
    linears = linear_layers(module)
    head = tuple(n for n in parameters if linears and n.rpartition(".")[0] == linears[-1])
    layout = Layout.of(parameters, head)
    training = prepared(module).train().to(dtype).requires_grad_(False)  # gradients are those of the vector
    if linears:
        tap = _Tap()
        training.get_submodule(linears[-1]).register_forward_pre_hook(tap)
        object.__setattr__(training, "hf_tap", tap)
    if stage := stage_of(training):
        ends = _Tap()
        training.get_submodule(stage[0]).register_forward_pre_hook(ends)
        training.get_submodule(stage[-1]).register_forward_hook(ends)
        object.__setattr__(training, "hf_stage", ends)
    # Looking for tied weights at every call is dear, and most modules have none.
    object.__setattr__(training, "hf_tied", tied(training))
    named = dict(training.named_buffers())
    live, keys = (tuple(n for n in named if n.rpartition(".")[2] == kind) for kind in (LIVE, KEY))
    buffers = {n: b.detach().clone() for n, b in named.items() if n not in {*live, *keys}}
    start = layout.join({n: p.to(dtype) for n, p in parameters.items()}).clone()
    return ModuleTask(training, copy.deepcopy(training).eval(), criterion, layout, start, buffers, (live, keys))


def tied(module: nn.Module) -> bool:
    """Whether a parameter or buffer stands under two names."""
    kinds = module.named_parameters, module.named_buffers
    return any(len(list(names())) < len(list(names(remove_duplicate=False))) for names in kinds)


def linear_layers(module: nn.Module) -> list[str]:
    modules: list[tuple[str, nn.Module]] = list(module.named_modules())  # pyright: ignore[reportUnknownArgumentType]
    return [name for name, m in modules if isinstance(m, nn.Linear)]
