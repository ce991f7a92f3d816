"""What the options of rules may be, one test an option, whatever the data is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.named import nearest

DIRICHLET = ("balanced", "recycled", "classwise", "minimum", "plain")


def is_whole(value: object, least: int = 1) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= least


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)


def _whole(name: str, value: Any) -> str:
    return "" if is_whole(value) else f"{name}={value!r} is not a whole number above 0"


def _from_zero(name: str, value: Any) -> str:
    return "" if is_whole(value, 0) else f"{name}={value!r} is not a whole number from 0"


def _alpha(name: str, value: Any) -> str:
    good = is_number(value) and value > 0
    return "" if good else f"{name}={value!r} is not a finite number above 0: 0.1 is skewed, 100 nearly even"


def _spread(name: str, value: Any) -> str:
    return "" if is_number(value) and value >= 0 else f"{name}={value!r} is not a finite number from 0"


def _flag(name: str, value: Any) -> str:
    return "" if isinstance(value, bool) else f"{name}={value!r} is unknown: write {name}=True or {name}=False"


def _share(name: str, value: Any) -> str:
    return "" if is_number(value) and 0 < value <= 1 else f"{name}={value!r} is not a share: give a number in (0, 1]"


def _min_size(name: str, value: Any) -> str:
    return "" if value == "classes" else _whole(name, value)


def _types(name: str, value: Any) -> str:
    low, high = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    good = is_whole(low) and is_whole(high) and low <= high
    return "" if good else f"{name}={value!r}: give a whole number above 0, or the least and the most: {name}=(2, 3)"


def _text(name: str, value: Any) -> str:
    return "" if isinstance(value, str) and value else f"{name}={value!r} is not a name in quotes"


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        return f"{name}={value!r} is not the path of a file, in quotes"
    return "" if Path(value).is_file() else f"{name}={value!r}: there is no such file"


def _one_of(*known: str) -> Callable[[str, Any], str]:
    def test(name: str, value: Any) -> str:
        ways = " or ".join(f"{name}={word!r}" for word in known)
        return "" if value in known else f"{name}={value!r} is unknown: write {ways}"

    return test


def _rule(name: str, value: Any) -> str:
    return "" if value in DIRICHLET else f"dirichlet has no rule {value!r}: {nearest(str(value), DIRICHLET)}"


TESTS: dict[str, Callable[[str, Any], str]] = {
    "clients": _whole,
    "clients_each": _whole,
    "k": _whole,
    "min_samples": _whole,
    "gap": _from_zero,
    "alpha": _alpha,
    "min_size": _min_size,
    "sigma": _spread,
    "recycled": _flag,
    "types": _types,
    "fraction": _share,
    "train": _share,
    "fraction_of": _one_of("samples", "clients"),
    "order": _one_of("random", "time"),
    "empty": _one_of("refuse", "allow"),
    "rule": _rule,
    "by": _text,
    "path": _path,
}


def value_problems(rule: Callable[..., Any], options: Mapping[str, Any]) -> list[str]:
    """What is wrong with the values of a rule's options; an option whose default is None may be None."""
    found: list[str] = []
    for parameter in signature(rule).parameters.values():
        value = options.get(parameter.name, parameter.default)
        if parameter.kind is not Parameter.KEYWORD_ONLY or (value is None and parameter.default is None):
            continue
        found.append(TESTS[parameter.name](parameter.name, value))
    return [text for text in found if text]
