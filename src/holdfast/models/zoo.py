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
from holdfast.models.cnns import dyn_cnn, leaf_cnn, lenet, moon_cnn, twoconv, uv_cnn, wenzhu_cnn
from holdfast.models.densenet import densenet121
from holdfast.models.din import FIELDS, din
from holdfast.models.layers import count_problems
from holdfast.models.lstm import charlstm
from holdfast.models.mobilenet import mobilenetv2
from holdfast.models.outside import installed, library_of, outside
from holdfast.models.resnet import resnet20, wrn56
from holdfast.models.resnet18 import resnet18, uv_resnet18
from holdfast.models.small import cnn, logreg, mlp
from holdfast.models.text import fasttext, textcnn
from holdfast.models.vit import vit

MODELS: dict[str, Callable[..., nn.Module]] = {
    make.__name__: make
    for make in (
        logreg, mlp, cnn, resnet20, wrn56, resnet18, uv_resnet18, densenet121, mobilenetv2, vit, twoconv, moon_cnn,
        uv_cnn, dyn_cnn, lenet, leaf_cnn, wenzhu_cnn, charlstm, textcnn, fasttext, din,
    )
}  # fmt: skip
FIELDWISE = {"din": len(FIELDS) + 1}  # models with a size for each field, and how many fields they need


def build(
    name: str, options: Mapping[str, Any], shape: tuple[int, ...], classes: int, seed: int, codes: tuple[int, ...] = ()
) -> nn.Module:
    """A built-in model, one of timm or torchvision, or what `package.module:callable` returns; on the CPU.

    The global generators are left alone. A callable gets the options, and `shape=`, `classes=` and `codes=` where its
    signature names them; `codes`: how many codes a row's vocabulary or each of its fields has, () for numbers.
    """
    shape, codes = tuple(shape), tuple(codes)
    problems = count_problems("classes", classes)
    if not shape or any(count_problems("shape", size) for size in shape):
        problems.append(f"shape={shape} is no sample shape: give sizes above 0, for images (channels, height, width)")
    filled: dict[str, Any] = {"shape": shape, "classes": classes, "codes": codes}
    if library_of(name):
        problems += number_problems(name, codes)
        return _made(name, options, seed, problems, lambda: outside(name, options, shape, classes))
    call = find("model", name, MODELS)
    named = _parameter_names(call)
    filled = {key: value for key, value in filled.items() if key in named}
    if name in MODELS:
        problems += option_problems(name, call, options, given=len(filled))
        problems += number_problems(name, codes) if "codes" not in named else []
        return _made(name, options, seed, problems, lambda: call(**filled, **options))
    filled = {**filled, **options}
    problems += option_problems(name, call, filled)
    return _made(name, options, seed, problems, lambda: call_outside("model", name, call, filled))


def number_problems(name: str, codes: tuple[int, ...]) -> list[str]:
    """Of a model of numbers on samples that are codes."""
    if not codes:
        return []
    readers = ", ".join(known for known, call in MODELS.items() if "codes" in _parameter_names(call))
    return [f"{name} needs numbers, the samples are codes (whole numbers that name things): take one of {readers}"]


def _made(
    name: str, options: Mapping[str, Any], seed: int, problems: list[str], call: Callable[[], nn.Module]
) -> nn.Module:
    if problems:
        raise Refused(*problems)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(_generator_seed(seed))
        made: Any = call()
    if not isinstance(made, nn.Module):
        text = expression(name, options)
        raise Refused(f"model {text} returned an object of type {type(made).__name__}: return a torch.nn.Module")
    return made


def check(name: str, options: Mapping[str, Any]) -> None:
    """Refuses what is wrong whatever the data is; a built-in model is tried for samples that suit it."""
    if library_of(name):
        return installed(name)
    call = find("model", name, MODELS)
    named = _parameter_names(call) & {"shape", "classes", "codes"}
    if name not in MODELS:
        problems = option_problems(name, call, {**dict.fromkeys(named), **options})
    else:
        problems = option_problems(name, call, options, given=len(named))
    if problems:
        raise Refused(*problems)
    if name in MODELS:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            call(**likely(name, named), **options)


def likely(name: str, named: set[str]) -> dict[str, Any]:
    """Samples that suit a built-in model: images that any patch or pooling fits, or codes."""
    if "codes" not in named:
        return {"shape": (3, 6720, 6720), "classes": 2}  # 6720 = 2^6 3 5 7; on the meta device its size costs nothing
    fields = FIELDWISE.get(name, 1)
    return {"shape": (fields if fields > 1 else 80,), "classes": 2, "codes": (80,) * fields}


def _parameter_names(call: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        return set()


def _generator_seed(seed: int) -> int:
    """Its own stream, apart from those of the split and of the batches with the same seed."""
    return int.from_bytes(hashlib.sha256(f"holdfast model {seed}".encode()).digest()[:8], "little") >> 1
