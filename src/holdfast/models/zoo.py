"""From a model's name and options to a module; the same seed gives the same weights on every call."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from holdfast.data.named import call_outside, expression, find, option_problems
from holdfast.errors import Refused
from holdfast.models.layers import count_problems
from holdfast.models.resnet import resnet20
from holdfast.models.small import cnn, logreg, mlp

MODELS: dict[str, Callable[..., nn.Module]] = {"logreg": logreg, "mlp": mlp, "cnn": cnn, "resnet20": resnet20}


def build(name: str, options: Mapping[str, Any], shape: tuple[int, ...], classes: int, seed: int) -> nn.Module:
    """A built-in model or what `package.module:callable` returns, on the CPU; the global generators are left alone.

    A callable gets the options, and `shape=` and `classes=` where its signature names them.
    """
    shape = tuple(shape)
    call = find("model", name, MODELS)
    problems = count_problems("classes", classes)
    if not shape or any(count_problems("shape", size) for size in shape):
        problems.append(f"shape={shape} is no sample shape: give sizes above 0, for images (channels, height, width)")
    filled = {"shape": shape, "classes": classes}
    if name not in MODELS:
        named = _parameter_names(call)
        filled = {key: value for key, value in filled.items() if key in named and key not in options}
        problems += option_problems(name, call, {**options, **filled})
    else:
        problems += option_problems(name, call, options, given=len(filled))
    if problems:
        raise Refused(*problems)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(_generator_seed(seed))
        made = call(**filled, **options) if name in MODELS else call_outside("model", name, call, {**filled, **options})
    if not isinstance(made, nn.Module):
        text = expression(name, options)
        raise Refused(f"model {text} returned an object of type {type(made).__name__}: return a torch.nn.Module")
    return made


def check(name: str, options: Mapping[str, Any]) -> None:
    """Refuses what is wrong whatever the data is; a built-in model is tried for small images of two classes."""
    call = find("model", name, MODELS)
    if name in MODELS:
        problems = option_problems(name, call, options, given=2)
    else:
        filled = dict.fromkeys(_parameter_names(call) & {"shape", "classes"})
        problems = option_problems(name, call, {**filled, **options})
    if problems:
        raise Refused(*problems)
    if name in MODELS:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            call((1, 8, 8), 2, **options)


def _parameter_names(call: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        return set()


def _generator_seed(seed: int) -> int:
    """Its own stream, apart from those of the split and of the batches with the same seed."""
    return int.from_bytes(hashlib.sha256(f"holdfast model {seed}".encode()).digest()[:8], "little") >> 1
