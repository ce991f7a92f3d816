"""Layers that stand in for torch's own where those would break a law: batch normalisation and dropout.

A cohort is padded, so batch statistics must come from live rows only; and random masks must not depend on which
clients are computed together, so they come from a key. Both reach the layer as buffers that the task substitutes.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from holdfast import noise
from holdfast.errors import Refused

LIVE, KEY = "hf_live", "hf_key"  # buffer names that no checkpoint holds


class LiveBatchNorm(nn.Module):
    """torch's BatchNorm over the live rows of a padded batch; equal to it when all rows live.

    timm's has dropout and activation inside, as submodules `drop` and `act`: they follow here too.
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    hf_live: Tensor

    def __init__(self, old: _BatchNorm):
        super().__init__()
        self.eps, self.momentum, self.training = old.eps, old.momentum, old.training
        for name, parameter in old.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        self.affine = old.affine
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, getattr(old, name))
        self.register_buffer(LIVE, torch.ones(1, dtype=torch.bool), persistent=False)
        self.then = tuple(dict(old.named_children()))
        for name in self.then:
            self.add_module(name, old.get_submodule(name))

    def forward(self, x: Tensor) -> Tensor:
        y = self.normalised(x)
        for name in self.then:
            y = self.get_submodule(name)(y)
        return y

    def normalised(self, x: Tensor) -> Tensor:
        if self.training or self.running_mean is None:
            mean, var = self.batch_statistics(x)
        else:
            assert self.running_var is not None
            mean, var = self.running_mean, self.running_var
        shape = (1, -1) + (1,) * (x.dim() - 2)
        y = (x - mean.view(shape)) * torch.rsqrt(var.view(shape) + self.eps)
        if self.affine:
            y = y * self.weight.view(shape) + self.bias.view(shape)
        return y

    def batch_statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = (0, *range(2, x.dim()))
        live = self.hf_live.to(x.dtype).view((-1,) + (1,) * (x.dim() - 1))
        per_row = x[0, 0].numel()
        count = (live.sum() * (x.shape[0] // live.shape[0]) * per_row).clamp(min=1)
        mean = (x * live).sum(axes) / count
        centred = (x - mean.view((1, -1) + (1,) * (x.dim() - 2))) * live
        var = centred.square().sum(axes) / count
        if self.training and self.running_mean is not None:
            self.track(mean.detach(), (var * count / (count - 1).clamp(min=1)).detach(), count)
        return mean, var

    def track(self, mean: Tensor, unbiased: Tensor, count: Tensor) -> None:
        assert self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None
        self.num_batches_tracked.copy_(self.num_batches_tracked + 1)
        factor = 1 / self.num_batches_tracked.to(mean.dtype) if self.momentum is None else self.momentum
        for old, new in ((self.running_mean, mean), (self.running_var, unbiased)):
            # One value has no variance: such a batch leaves the running statistics alone.
            old.copy_(torch.where(count > 1, old + factor * (new - old), old))


class KeyedDropout(nn.Module):
    """Dropout whose mask is a function of (key, layer, position); the same in every executor."""

    hf_key: Tensor

    def __init__(self, p: float, layer: int, dims: int):
        super().__init__()
        self.p, self.layer, self.dims = p, layer, dims  # how many leading dimensions have a mask: all if 0
        self.register_buffer(KEY, torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        shape = x.shape[: self.dims] + (1,) * (x.dim() - self.dims) if self.dims else x.shape
        index = torch.arange(shape.numel(), device=x.device).view(shape)
        keep = noise.uniform(noise.fold(self.hf_key, self.layer), index) >= self.p
        return x * keep / max(1 - self.p, 1e-12)


def prepared(module: nn.Module) -> nn.Module:
    """A copy of the module with those layers in place; parameter and buffer names stay as they are."""
    if any(isinstance(m, nn.AlphaDropout | nn.FeatureAlphaDropout) for m in module.modules()):
        raise Refused("the model uses AlphaDropout, which has no keyed form here; use nn.Dropout or remove it")
    if own := sorted({f"{type(m).__module__}.{type(m).__name__}" for m in module.modules() if not plain(m)}):
        raise Refused(f"the model has batch normalisation that does more than torch's ({', '.join(own)}), and padded "
                      "rows must be left out of it; use torch.nn.BatchNorm1d, 2d or 3d, or nn.GroupNorm")  # fmt: skip
    module = copy.deepcopy(module)
    layer = 0
    parents = list(module.modules())
    for parent in parents:
        for name, child in list(parent.named_children()):
            if isinstance(child, _BatchNorm):
                made = LiveBatchNorm(child)
                setattr(parent, name, made)
                parents.append(made)  # for a dropout inside
            elif drops := dropout(child):
                setattr(parent, name, KeyedDropout(drops[0], layer := layer + 1, drops[1]))
    return module


def plain(module: nn.Module) -> bool:
    """Whether a layer is no batch normalisation, torch's, or torch's followed by timm's dropout and activation."""
    if not isinstance(module, _BatchNorm) or type(module).forward in (_BatchNorm.forward, nn.SyncBatchNorm.forward):
        return True
    return type(module).__module__.startswith("timm.") and tuple(dict(module.named_children())) == ("drop", "act")


def dropout(module: nn.Module) -> tuple[float, int] | None:
    """The share that a layer leaves out, and how many leading dimensions have a mask; None of other layers.

    Stochastic depth is dropout of whole rows: torchvision's StochasticDepth and timm's DropPath.
    """
    if isinstance(module, _DropoutNd):
        return module.p, 0 if type(module) is nn.Dropout else 2
    kind, options = f"{type(module).__module__.partition('.')[0]}.{type(module).__name__}", vars(module)
    if kind == "torchvision.StochasticDepth" and options["mode"] == "row":
        return options["p"], 1
    if kind == "timm.DropPath" and options["scale_by_keep"]:
        return options["drop_prob"] or 0.0, 1
    return None
