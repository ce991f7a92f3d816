"""Differential privacy of whole clients: what its parts share, and how much privacy a run has spent.

Noise is a function of the seed, for experiments that repeat: who knows the seed can take it away. It is floating-point
noise, whose last bits can tell of the data (Mironov 2012). For a real release take secret, cryptographic randomness and
a discrete sampler.
"""

from __future__ import annotations

import logging
import math
from typing import Any

from holdfast.errors import Refused
from holdfast.method import Method, Part
from holdfast.slots import Close, Codec, Merge, Weigh
from holdfast.vector import Vector

DELTA = 1e-5


def clipped(delta: Vector, clip: Any) -> Vector:
    """No longer than `clip`, up to rounding."""
    return delta * (clip / delta.norm()).clamp(max=1)


def objection(guard: Part, method: Method) -> str | None:
    """Why a method would show more of a client than the clipped update that `guard` answers for."""
    me, others = guard.name, [p for p in method.parts if p is not guard]
    place = [p is guard for p in method.parts].index(True)
    found: list[str] = []
    for p in others:
        after = p in method.parts[place:] and p.fills(Close) and Close not in p.observes and not p.guards
        rules = (
            (p.fills(Weigh), "sets the clients' weights, and the clip bounds what one client can do only where all "
                             f"weigh equally, as they do beside '{me}'; drop '{p.name}'"),
            (bool(p.uplink), f"sends {' and '.join(p.uplink)} beside the update, which '{me}' neither clips nor hides; "
                             "drop one of the two"),
            (after, f"changes the update after '{me}' has clipped it; write '{p.name}' before '{me}'"),
            (p.fills(Codec) and guard.fills(Merge), f"changes the update after '{me}' has clipped it; drop one of the "
                                                    "two, or take ldp, which adds its noise before"),
        )  # fmt: skip
        found += [f"'{p.name}' {why}" for broken, why in rules if broken]
    return "; ".join(found) or None


def epsilon(noise: float, rate: float, rounds: int, delta: float = DELTA) -> float:
    """Of so many rounds of the Gaussian mechanism, each client drawn on its own with chance `rate` (Poisson sampling).

    `noise` is the noise's standard deviation over the largest change that one client can make to the sum. Neighbours
    differ in one client's data being there or not. Renyi accountant of dp-accounting.
    """
    rules = (
        (noise >= 0, f"noise={noise} must be >= 0"), (0 <= rate <= 1, f"rate={rate} must be in [0, 1]"),
        (rounds >= 0, f"rounds={rounds} must be >= 0"), (0 < delta < 1, f"delta={delta} must be in (0, 1)"),
    )  # fmt: skip
    if problems := [said for good, said in rules if not good]:
        raise Refused(*problems)
    if not rounds or not rate:
        return 0.0
    if not noise:
        return math.inf
    dp: Any = accounting()
    event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise))
    absl = logging.getLogger("absl")
    level = absl.level
    absl.setLevel(logging.ERROR)  # it tells of every order that it leaves out of the minimum
    try:
        return float(dp.rdp.RdpAccountant().compose(dp.SelfComposedDpEvent(event, rounds)).get_epsilon(delta))
    finally:
        absl.setLevel(level)


def accounting() -> Any:
    try:
        import dp_accounting  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise Refused("counting privacy needs the extra: pip install 'holdfast[privacy]'") from error
    return dp_accounting


def told(method: Method, cohort: int | float, clients: int, rounds: int) -> str:
    """What a run of so many rounds guarantees, in a line; empty for a method without privacy.

    `cohort` is a number of clients, or the chance of each.
    """
    for p in method.parts:
        if p.guards:
            noise, central = float(p.options()["noise"]), p.fills(Merge)
            rate = (cohort / clients if isinstance(cohort, int) else cohort) if central else 1.0
            try:
                spent = epsilon(noise if central else noise / 2, rate, rounds)
            except Refused as refused:
                return f"epsilon is not counted: {refused}"
            line = f"epsilon {spent:.3g} at delta {DELTA:g} after {rounds} round{'s' * (rounds != 1)}"
            return line + (sampling(cohort, clients, rounds) if central else LOCAL)
    return ""


LOCAL = ", for a client that takes part in all of them and against everybody, the server included"


def sampling(cohort: int | float, clients: int, rounds: int) -> str:
    """How the clients of a round are drawn, and whether that is what the accountant assumes.

    Nobody is drawn again until somebody is. So with the chance that all others stay out and the client does not, it is
    certainly in; else it is in with the chance `cohort`, and the accountant is right.
    """
    if cohort == (clients if isinstance(cohort, int) else 1):
        return " with every client in each"
    if isinstance(cohort, int):
        rate = f"{cohort / clients:.4g}"
        return (f" if each client were drawn on its own with chance {rate} (Poisson sampling); exactly {cohort} of "
                f"{clients} carry no such guarantee: take --cohort \"bernoulli({rate})\"")  # fmt: skip
    sure = rounds * cohort * (1 - cohort) ** (clients - 1) / (1 - (1 - cohort) ** clients)
    more = f"; as a draw of nobody is repeated, delta is {DELTA + sure:.2g}" if sure > DELTA / 100 else ""
    return f" at sampling rate {cohort:g} (Poisson sampling){more}"
