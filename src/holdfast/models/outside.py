"""Models of timm and torchvision by name, without their weights: nothing is downloaded."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from holdfast.data.named import nearest
from holdfast.errors import Refused

LIBRARIES = ("timm", "torchvision")
OURS = {
    "num_classes": "it follows from the data", "in_chans": "it follows from the data",
    "aux_logits": "a model has one head here",
    **dict.fromkeys(
        ("pretrained", "weights", "weights_backbone", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay"),
        "weights start untrained",
    ),
}  # fmt: skip
AUXILIARY = ("googlenet", "inception_v3")  # in training they would give the logits of more heads


def library_of(name: str) -> str:
    """'timm' or 'torchvision' for `timm:NAME` or `torchvision:NAME`, else nothing."""
    library = name.partition(":")[0]
    return library if ":" in name and library in LIBRARIES else ""


def outside(name: str, options: Mapping[str, Any], shape: tuple[int, ...], classes: int) -> nn.Module:
    """The model with untrained weights, for the data's channels and classes; options go to the library."""
    library, _, model = name.partition(":")
    problems = [f"{name} has no option '{key}' here: {OURS[key]}" for key in options if key in OURS]
    if len(shape) != 3:
        problems.append(f"{name} needs images (channels, height, width), the samples have shape {tuple(shape)}")
    if problems:
        raise Refused(*problems)
    create, names = _opened(library)
    if model not in names:
        raise Refused(f"{library} has no model '{model}': {_nearest(model, names)}")
    try:
        if library == "timm":
            return unfused(create(model, pretrained=False, num_classes=classes, in_chans=shape[0], **options))
        more = {"aux_logits": False, "init_weights": True} if model in AUXILIARY else {}
        return with_channels(create(model, weights=None, num_classes=classes, **more, **options), shape[0])
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{name} with these options failed: {type(error).__name__}: {error}; call it on its own in "
                      f"Python to see where") from error  # fmt: skip


def installed(name: str) -> None:
    """Refuses a library that is not there and a model that it does not have."""
    library, _, model = name.partition(":")
    names = _opened(library)[1]
    if model not in names:
        raise Refused(f"{library} has no model '{model}': {_nearest(model, names)}")


def unfused(net: nn.Module) -> nn.Module:
    """timm's attention as plain products, by its own switch: torch.func.vmap has no rule for the fused kernel."""
    for module in net.modules():
        if "fused_attn" in vars(module):
            object.__setattr__(module, "fused_attn", False)
    return net


def with_channels(net: nn.Module, channels: int) -> nn.Module:
    """torchvision's models are for three channels; the first convolution is made anew for another number."""
    found = next(((name, m) for name, m in net.named_modules() if isinstance(m, nn.Conv2d)), None)
    if found is None or found[1].in_channels == channels:
        return net
    name, old = found
    parent, _, last = name.rpartition(".")
    made = nn.Conv2d(
        channels, old.out_channels, old.kernel_size, old.stride, old.padding, old.dilation,  # type: ignore[arg-type]
        bias=old.bias is not None, padding_mode=old.padding_mode,
    )  # fmt: skip
    setattr(net.get_submodule(parent), last, made)
    return net


def _opened(library: str) -> tuple[Callable[..., nn.Module], list[str]]:
    """How a library makes a model, and the names that it knows."""
    try:
        if library == "timm":
            timm = importlib.import_module("timm")
            return timm.create_model, timm.list_models()
        models = importlib.import_module("torchvision.models")
        return models.get_model, models.list_models(module=models)
    except ImportError:
        raise Refused(f'{library} is not installed: pip install "holdfast[{library}]"') from None
    except Exception as error:  # torchvision built for another torch does not import
        raise Refused(
            f"{library} does not work here: {type(error).__name__}: {error}; install the torchvision that goes with "
            f'this torch, from the same index, then pip install "holdfast[{library}]"'
        ) from error


def _nearest(model: str, names: list[str]) -> str:
    """The list is long: only what is close."""
    close = nearest(model, names).partition("? ")[0]
    return f"{close}?" if close.startswith("did you mean") else f"it knows {len(names)} others"
