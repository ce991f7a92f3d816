"""Sums of two to six parts that nobody chose, drawn by a fixed seed."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any, Literal, get_args, get_origin

from holdfast.errors import Refused
from holdfast.method import REGISTRY, Method, Part
from holdfast.text import made

# Where half to twice the default would do nothing on a problem of toy size.
SPREAD = {("clip", "max"): (0.05, 1.0), ("adam", "lr"): (0.01, 0.05)}
WHOLE = {("law", "epochs"): 2}  # for time


def drawn_option(draw: random.Random, name: str, key: str, hint: Any, default: Any) -> Any:
    if get_origin(hint) is Literal:
        return draw.choice(get_args(hint))
    if hint is bool:
        return draw.choice((True, False))
    if hint is not float:
        return WHOLE.get((name, key), default)
    low, high = SPREAD.get((name, key), (default / 2, default * 2))
    return float(f"{draw.uniform(low, high):.3g}")


def drawn_part(draw: random.Random, name: str) -> Part:
    """With options around its defaults; drawn again where one leaves its range."""
    defaults, hints = REGISTRY[name]().options(), REGISTRY[name].hints()
    while True:
        options = {key: drawn_option(draw, name, key, hints[key], value) for key, value in defaults.items()}
        try:
            return made(name, options)
        except Refused:
            continue


def legal(parts: list[Part]) -> Method | None:
    try:
        return Method(tuple(parts))
    except Refused:
        return None


@cache
def compositions(many: int, seed: int) -> list[Method]:
    """Parts that were drawn less often are likelier, so that all have their turn."""
    draw, found, seen = random.Random(seed), dict[Method, None](), Counter[str]()
    names = sorted(REGISTRY)
    while len(found) < many:
        size, parts = draw.randint(2, 6), list[Part]()
        for _ in range(40):
            weights = [1 / (1 + seen[name]) ** 2 for name in names]
            part = drawn_part(draw, draw.choices(names, weights)[0])
            # A perturbation's filter may wait for its ascent, so legality is asked of the whole only at the end.
            if legal([*parts, part]) or legal([*parts, part, made("sam", {})]):
                parts.append(part)
            if len(parts) == size:
                break
        method = legal(parts)
        if method is not None and len(parts) == size and method not in found:
            found[method] = None
            seen.update(p.name for p in parts)
    return list(found)
