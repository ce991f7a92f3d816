"""A client that sends its update with the sign turned and a hundred times as long: what a robust mean is for."""

import pytest
import torch
from rig import F64, Simple, quadratics, sum_of, throwaway

from holdfast.method import Part
from holdfast.slots import Close

BAD, CLIENTS, ROUNDS = 4, 9, 10
DRAW = torch.Generator().manual_seed(5)
CURVES = 1 + torch.rand(CLIENTS, 6, generator=DRAW, dtype=F64)
CENTRES = 3 + 0.3 * torch.randn(CLIENTS, 6, generator=DRAW, dtype=F64)  # much alike, so that all agree where to go
BEGIN = torch.zeros(6, dtype=F64)
HONEST = [i for i in range(CLIENTS) if i != BAD]
BEST = (CURVES * CENTRES)[HONEST].mean(0) / CURVES[HONEST].mean(0)


@throwaway("poison")
class Poison(Part, Close):
    """The client whose number of samples is marked lies."""

    def close(self, delta, s):
        return torch.where(s.card["n"] == BAD_SIZE, -100 * delta, delta), {}, {}


BAD_SIZE = 1.5
SIZES = [BAD_SIZE if i == BAD else 1.0 for i in range(CLIENTS)]


def ended(text: str, poisoned: bool = True, engine: str = "loop") -> Simple:
    method = sum_of(text, Poison()) if poisoned else text
    fed = quadratics(method, CURVES, CENTRES, BEGIN, sizes=SIZES, engine=engine)
    for _ in range(ROUNDS):
        fed.go(5)
    return fed


def away(fed: Simple) -> float:
    """From the optimum of the honest clients; all start ||BEST|| = 7.4 from it."""
    return float((fed.server.w - BEST).norm())


ROBUST = ["median", "trimmed(beta=0.2)", "krum", "krum(f=1, m=3)"]


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", ROBUST)
def test_a_robust_mean_arrives_all_the_same(text, engine):
    """Nine clients, one of them bad. FedAvg leaves for 1e4 and more; the others end beside the honest optimum.

    The honest centres scatter by .3 in 6 dimensions, so one client's own optimum, which krum takes, is about .7 away.
    """
    assert away(ended("fedavg", engine=engine)) > 1e4
    assert away(ended(text, engine=engine)) < 1.0
    assert away(ended("fedavg", poisoned=False)) < 0.1  # the lie is the cause


@pytest.mark.parametrize("text", ROBUST)
def test_nothing_is_lost_without_a_bad_client(text):
    assert away(ended(text, poisoned=False)) < 1.0


def test_who_is_trimmed_too_little_is_lost():
    """floor(.1 * 9) = 0: nothing is cut, and one bad client is enough; the same for krum of all nine."""
    for text in ("trimmed(beta=0.1)", "krum(f=1, m=9)"):
        assert away(ended(text)) > 1e4
