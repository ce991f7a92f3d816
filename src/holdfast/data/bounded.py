"""Draws that are repeated until they are good enough, but not for ever; and what would have been good enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from numpy.random import Generator

NUMBERS = 2 * 10**7  # drawn at most in one search: a few seconds
MOST = 1000
Smallest = Callable[[Generator, float, int], int]  # (generator, alpha, clients) -> samples of the smallest client


def tries(clients: int, classes: int) -> int:
    """How often a draw is repeated before it is given up."""
    return max(20, min(MOST, NUMBERS // (clients * classes)))


def feasible(smallest: Smallest, rng: Generator, alpha: float, clients: int, wanted: int, classes: int) -> str:
    """The nearest settings where most draws give every client its `wanted` samples, as words; '' if none is found."""
    many = 5 if clients * classes < 10**5 else 3

    def works(alpha: float, clients: int) -> bool:
        good = 0
        for i in range(many):
            good += smallest(rng, alpha, clients) >= wanted
            if 2 * good > many or 2 * (good + many - i - 1) <= many:
                break
        return 2 * good > many

    larger = next((a for a in _alphas(alpha) if works(a, clients)), None)
    fewer = next((n for n in _fewer(clients) if works(alpha, n)), None)
    found = ([] if larger is None else [f"alpha={larger:g}"]) + ([] if fewer is None else [f"clients={fewer}"])
    return f"{' or '.join(found)} (there most draws succeed)" if found else ""


def _alphas(alpha: float) -> Iterator[float]:
    """1, 2, 5, 10, ... above alpha, up to 100, where classes are nearly even."""
    steps = (float(f"{digit}e{power}") for power in range(-4, 3) for digit in (1, 2, 5))
    return (step for step in steps if alpha < step <= 100)


def _fewer(clients: int) -> Iterator[int]:
    while clients > 2:
        clients = max(2, clients * 4 // 5)
        yield clients


def room(clients: int, least: int, count: int) -> list[str]:
    """Whether there are enough samples for a smallest client of this size."""
    if least * clients <= count:
        return []
    return [
        f"{clients} clients of at least {least} samples need {least * clients}, the data has {count}: "
        f"take min_size={count // clients} or clients={max(count // least, 1)} at most"
    ]


def never(what: str, draws: int, least: int, best: int, near: str, instead: str) -> str:
    """Why a repeated draw was given up, and what is near."""
    ways = [f"min_size={best}"] * (best > 0) + ([near] if near else ["fewer clients, a larger alpha"]) + [instead]
    return (
        f"{what}: in {draws} draws the smallest client never had {least} samples (at best {best}): "
        f"take {', or '.join(ways)}"
    )
