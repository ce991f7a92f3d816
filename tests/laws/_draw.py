"""Sums of two to six parts that nobody chose, drawn by a fixed seed."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from functools import cache
from itertools import combinations, product
from typing import Any, Literal, get_args, get_origin

from holdfast.errors import Refused
from holdfast.method import REGISTRY, Method, Part
from holdfast.slots import SLOTS
from holdfast.spectrum import READS, UNREAD
from holdfast.text import made

# Where half to twice the default would do nothing on a problem of toy size, or drown it in noise.
SPREAD = {
    ("clip", "max"): (0.05, 1.0), ("adam", "lr"): (0.01, 0.05), ("topk", "k"): (0.02, 0.2),
    ("local_adam", "eps"): (1e-4, 1e-2),  # at 1e-8 rounding becomes whole steps where a gradient is zero
    ("univar", "eps"): (0.05, 0.2),  # at .01 identical features repel so that rounding passes 1e-12
    ("dp", "clip"): (0.05, 1.0), ("dp", "noise"): (0.01, 0.1),
    ("ldp", "clip"): (0.05, 1.0), ("ldp", "noise"): (0.01, 0.1),
}  # fmt: skip
# Numbers and words that no range describes; law's are few for time.
CHOICES: dict[tuple[str, str], tuple[Any, ...]] = {
    ("specgrad", "order"): ("natural", "random", "random_client", "0231", "2301", "3210"),
    ("specgrad", "scope"): ("all", "all", "matrix", "conv", "linear"),
    ("specgrad", "draw"): (0, 5), ("specgrad", "width"): (0.0, 0.0, 3.0), ("specpert", "draw"): (0, 5),
    ("univar", "lam"): ("classes/4", 0.5, 2.0), ("uv", "lam"): ("classes/4", 0.5, 2.0),
    ("krum", "f"): (0, 1, 2), ("krum", "m"): (1, 2, 3), ("gloss", "warm"): (0, 1, 3), ("law", "epochs"): (1, 2),
    ("per", "layers"): ("head", "0."), ("quantize", "bits"): (4, 8),  # with fewer the sign of a rounding error is sent
}  # fmt: skip


def words(name: str, key: str, hint: Any) -> tuple[Any, ...]:
    """The values of an option that is no plain number; none where it is one, or always its default."""
    if (name, key) in CHOICES or hint is bool:
        return CHOICES.get((name, key), (True, False))
    return get_args(hint) if get_origin(hint) is Literal else ()


def drawn_option(draw: random.Random, name: str, key: str, default: Any, seen: Counter[Any]) -> Any:
    hint = REGISTRY[name].hints()[key]
    if some := words(name, key, hint):  # the likelier, the less often it was drawn
        return draw.choices(some, [1 / (1 + seen[name, key, value]) ** 2 for value in some])[0]
    if hint is not float:
        return default
    low, high = SPREAD.get((name, key), (default / 2, default * 2))
    return float(f"{draw.uniform(low, high):.3g}")


def drawn_part(draw: random.Random, name: str, seen: Counter[Any]) -> Part:
    """With options around its defaults; drawn again where one leaves its range."""
    defaults = REGISTRY[name]().options()
    while True:
        options = {key: drawn_option(draw, name, key, value, seen) for key, value in defaults.items()}
        if name == "specgrad":  # the others of its options have no use beside this kind
            read = READS[options["kind"]].split()
            options |= {key: defaults[key] for key in UNREAD if key not in read}
        try:
            return made(name, options)
        except Refused:
            continue


def legal(parts: list[Part]) -> Method | None:
    try:
        return Method(tuple(parts))
    except Refused:
        return None


def pairs(method: Method) -> set[tuple[str, str]]:
    """The pairs of slots that two different parts of a method fill."""
    filled = [(slot.__name__, p.name) for slot in SLOTS for p in method.parts if p.fills(slot)]
    return {tuple(sorted((a, b))) for (a, p), (b, q) in combinations(filled, 2) if p != q}  # pyright: ignore[reportReturnType]


def forms(name: str) -> list[Part]:
    """A part at its defaults, and with each word that one of its options can take."""
    found = {made(name, {}): None}
    for key, hint in REGISTRY[name].hints().items():
        for word in words(name, key, hint):
            with contextlib.suppress(Refused):
                found[made(name, {key: word})] = None
    return list(found)


@cache
def possible() -> dict[tuple[str, str], list[Method]]:
    """The pairs of slots that some legal sum of two parts fills, sam beside a filter of perturbations; and the sums."""
    found: dict[tuple[str, str], list[Method]] = {}
    kinds = {name: forms(name) for name in REGISTRY}
    for a, b in combinations(sorted(kinds), 2):
        for two in product(kinds[a], kinds[b]):
            method = legal([*two]) or legal([*two, made("sam", {})])
            for pair in pairs(method) if method else ():
                found.setdefault(pair, []).append(method)  # pyright: ignore[reportArgumentType]
    return found


def spoken() -> list[tuple[str, str, Any]]:
    """Every word that an option of a part can take."""
    hints = [(name, key, hint) for name, cls in REGISTRY.items() for key, hint in cls.hints().items()]
    return [(name, key, word) for name, key, hint in hints for word in words(name, key, hint)]


def worded(method: Method, name: str, key: str, word: Any) -> Method | None:
    """The same sum with that option of one of its parts, if it has the part and may say so."""
    old = next((p for p in method.parts if p.name == name), None)
    with contextlib.suppress(Refused):
        return old and Method(tuple(made(name, {**p.options(), key: word}) if p is old else p for p in method.parts))
    return None


def covered(drawn: list[Method], many: int, least: int) -> None:
    """Asserts what a draw promises: sizes, every part often, every pair of slots, every word that an option takes."""
    times = Counter(p.name for method in drawn for p in method.parts)
    met = set[tuple[str, str]]().union(*(pairs(method) for method in drawn))
    assert len(drawn) == many and all(2 <= len(method.parts) <= 6 for method in drawn)
    assert not (rare := {name: times[name] for name in REGISTRY if times[name] < least}), f"too rare: {rare}"
    assert not (missing := possible().keys() - met), f"pairs of slots that no composition fills: {sorted(missing)}"
    seen = {(p.name, key, value) for method in drawn for p in method.parts for key, value in p.options().items()}
    never = [f"{name}({key}={word!r})" for name, key, word in spoken() if (name, key, word) not in seen]
    assert not never, f"options that nobody drew: {never}"


@cache
def compositions(many: int, seed: int) -> list[Method]:
    """Parts that were drawn less often are likelier, so that all have their turn.

    A pair of slots that few parts fill, or a word that few options take, may never come: sums that have it then stand
    for the last ones.
    """
    draw, found, seen = random.Random(seed), dict[Method, None](), Counter[Any]()
    names = sorted(REGISTRY)
    while len(found) < many:
        size, parts = draw.randint(2, 6), list[Part]()
        for _ in range(40):
            weights = [1 / (1 + seen[name]) ** 2 for name in names]
            part = drawn_part(draw, draw.choices(names, weights)[0], seen)
            # A perturbation's filter may wait for its ascent, so legality is asked of the whole only at the end.
            if legal([*parts, part]) or legal([*parts, part, made("sam", {})]):
                parts.append(part)
            if len(parts) == size:
                break
        method = legal(parts)
        if method is not None and len(parts) == size and method not in found:
            found[method] = None
            seen.update(p.name for p in parts)
            seen.update((p.name, key, value) for p in parts for key, value in p.options().items())
    drawn = list(found)
    met = set[tuple[str, str]]().union(*(pairs(method) for method in drawn))
    rare = [draw.choice(possible()[pair]) for pair in sorted(possible().keys() - met)]
    for name, key, word in spoken():
        if not seen[name, key, word]:
            rare.append(next(m for m in (worded(method, name, key, word) for method in drawn) if m))
    return drawn[: many - len(rare)] + rare
