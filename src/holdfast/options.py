"""What the plain options of a run must be; everything found is told, not only the first."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from holdfast.data.augment import augmentation
from holdfast.data.normal import normalised
from holdfast.data.proxy import LARGEST
from holdfast.data.redraw import KINDS, Drift
from holdfast.errors import Problem, Refused
from holdfast.execute.auto import ENGINES
from holdfast.text import EXAMPLES, one

if TYPE_CHECKING:
    from holdfast.experiment import Run

GIVEN = "given in Python:"  # how an object that has no text is written down
DTYPES = {"float32": torch.float32, "float64": torch.float64}
T = TypeVar("T")


def numbers(run: Run) -> list[str]:
    """What is wrong with the plain options."""
    most = 4 * (os.cpu_count() or 1)
    rules: list[tuple[str, bool, str]] = [
        (name, whole(getattr(run, name), 1), "must be a whole number of at least 1")
        for name in ("rounds", "batch", "eval_every", "checkpoint_every")
    ]
    rules += [
        ("epochs", run.epochs is None or whole(run.epochs, 1), "must be a whole number of at least 1"),
        ("steps", run.steps is None or whole(run.steps, 1), "must be a whole number of at least 1"),
        ("steps", run.steps is None or run.epochs is None, f"stands beside epochs={run.epochs}; give one of the two"),
        ("seed", whole(run.seed, 0) and run.seed < 2**64, "must be a whole number from 0 to 2^64 - 1"),
        ("lanes", whole(run.lanes, 0), "must be a whole number; 0 lets the plan choose"),
        ("threads", whole(run.threads, 0) and run.threads <= most, f"must be from 0 (torch's own number) to {most}"),
        ("lr", positive(run.lr), "must be a number above 0"),
        ("lr_decay", positive(run.lr_decay) and run.lr_decay <= 1, "must be a number above 0 and at most 1"),
        ("server_lr", positive(run.server_lr), "must be a number above 0"),
        ("on_nan", run.on_nan in ("stop", "drop"), "must be 'stop' or 'drop'"),
        ("engine", run.engine in ("auto", *ENGINES), f"must be one of auto, {', '.join(ENGINES)}"),
        ("dtype", run.dtype in list(DTYPES), f"must be one of {', '.join(DTYPES)}"),
        ("device", usable(run.device), "is not a device that torch can use here; take cpu"),
        ("finetune", whole(run.finetune, 0), "must be a whole number of epochs; 0 leaves it out"),
        (
            "proxy",
            run.proxy == 0 or (positive(run.proxy) and run.proxy < LARGEST),
            "must be from 0 (none) to below 0.5",
        ),
        ("data_dir", isinstance(run.data_dir, str), "must be the path of a folder, as text"),
        ("ray_address", addressed(run.ray_address), "must be host:port of a ray head, or auto"),
        ("workers", whole(run.workers, 0), "must be a whole number; 0 takes as many as there is room for"),
        ("workers_per_gpu", whole(run.workers_per_gpu, 1), "must be a whole number of at least 1"),
        ("drop_last", isinstance(run.drop_last, bool), "must be true or false"),
        ("compile", isinstance(run.compile, bool), "must be true or false"),
    ]
    found: list[str] = [
        Problem(f"{name.replace('_', '-')}={getattr(run, name)!r} {reason}", name)
        for name, good, reason in rules
        if not good
    ]
    attempt(found, lambda: cohort_of(run.cohort), "cohort")
    attempt(found, lambda: drift_of(run.drift), "drift")
    attempt(found, lambda: augmentation(text_of(run.augment, "augmentation")), "augment")
    if run.normalize != "data":
        attempt(found, lambda: normalised(text_of(run.normalize, "normalisation")), "normalize")
    return found


def whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def addressed(value: Any) -> bool:
    return isinstance(value, str) and (value in ("", "auto") or re.fullmatch(r"[^/\s]+:[0-9]{1,5}", value) is not None)


def usable(device: Any) -> bool:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError):
        return False
    return device != "meta"


def attempt(problems: list[str], make: Callable[[], T], option: str = "") -> T | None:
    """The result, or None with the reasons added to the list, as those of an option."""
    try:
        return make()
    except Refused as refused:
        problems += [Problem(text, option) for text in refused.problems]
        return None


def cohort_of(text: int | str) -> int | float:
    """A number of clients, or the probability of `bernoulli(p)`."""
    if isinstance(text, str) and text.strip().isdigit():
        text = int(text)
    if isinstance(text, int) and whole(text, 1):
        return text
    chance = re.fullmatch(r"\s*bernoulli\(\s*(?:p\s*=\s*)?([0-9.eE+-]+)\s*\)\s*", str(text))
    with contextlib.suppress(ValueError):
        if chance and 0 < float(chance[1]) <= 1:
            return float(chance[1])
    raise Refused(f"cohort={text!r} must be a number of clients, such as 10, or bernoulli(0.1) with 0 < p <= 1")


def drift_of(text: str) -> Drift:
    """`both`, `period`, or `client` with the alpha by which its parts are drawn."""
    with contextlib.suppress(Refused):
        call = one(str(text), "drift")
        alpha = call.options.get("alpha", Drift.alpha)
        known = call.name in KINDS and set(call.options) <= ({"alpha"} if call.name == "client" else set[str]())
        if known and positive(alpha):
            return Drift(call.name, float(alpha))
    raise Refused(f"drift={text!r} must be one of both, period and client(alpha=0.1), with alpha above 0")


def text_of(value: Any, kind: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"{kind}={value!r} is a {type(value).__name__}; give a text such as {EXAMPLES[kind]!r}")
    if value.startswith(GIVEN):
        raise Refused(f"the {kind} of this run was {value}; it can be resumed from Python, with the same object")
    return value
