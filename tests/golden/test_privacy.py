"""What hides a client: the clip and the noise as stated, what is refused because it would show more, the accountant."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from rig import F64
from torch import Tensor

import holdfast
from holdfast import noise, privacy
from holdfast.check import sheet
from holdfast.data.plan import keys, sample
from holdfast.data.sets import Dataset
from holdfast.errors import Refused
from holdfast.models.zoo import build
from holdfast.slots import Close, Merge, Round, Step
from holdfast.task import Batch, Task
from holdfast.testing import quadratic
from holdfast.text import parse
from holdfast.vector import Layout

MANY = 200_000
LAYOUT = Layout.of({"a": torch.zeros(MANY), "mine": torch.zeros(10)}).keeping(["mine"])  # and 54 places of padding
ZERO = torch.zeros(LAYOUT.length, dtype=F64)
TASK = Task.of(quadratic, layout=LAYOUT, dtype=F64).having(start=ZERO)
NOUGHT = torch.zeros((), dtype=F64)


def at_server(text: str, deltas: Tensor, t: int = 0, expected: float | None = None) -> Tensor:
    part, many = parse(text).slot(Merge)[0], len(deltas)
    live = torch.ones(many, dtype=torch.bool)
    r = Round(
        TASK, ZERO, ZERO, NOUGHT, NOUGHT.long() + t, noise.fold(torch.tensor(5), t), torch.arange(many), {}, live,
        NOUGHT + many, NOUGHT + 100, deltas, expected=None if expected is None else NOUGHT + expected, tag=part.tag,
    )  # fmt: skip
    return part.merge(deltas, r)


def at_client(text: str, delta: Tensor, key: Tensor | int = 0) -> Tensor:
    part = parse(text).slot(Close)[0]
    s = Step(TASK, ZERO, ZERO, ZERO, NOUGHT, NOUGHT + 3, NOUGHT, torch.as_tensor(key), {}, {}, {})
    return part.close(delta, replace(s, tag=part.tag))[0]


def gaussian(z: Tensor) -> None:
    """Of standard normal numbers: four moments within five of their errors, the shares within 1, 2 and 3, the ends."""
    error = 1 / math.sqrt(len(z))
    assert abs(float(z.mean())) < 5 * error
    assert abs(float(z.square().mean()) - 1) < 5 * math.sqrt(2) * error
    assert abs(float((z**3).mean())) < 5 * math.sqrt(15) * error
    assert abs(float((z**4).mean()) - 3) < 5 * math.sqrt(96) * error
    for width in (1, 2, 3):
        share = math.erf(width / math.sqrt(2))
        assert abs(float((z.abs() < width).double().mean()) - share) < 5 * math.sqrt(share * (1 - share)) * error
    assert 4 < float(z.abs().max()) < 6.7
    assert len(z.unique()) == len(z)


def related(a: Tensor, b: Tensor) -> float:
    return abs(float((a * b).mean())) * math.sqrt(len(a))  # standard normal if they are independent


@pytest.mark.parametrize("clip, multiplier, many", [(1.0, 1.0, 4), (0.3, 2.5, 10)])
def test_the_noise_of_the_mean(clip, multiplier, many):
    """McMahan et al. 2018, alg. 1: N(0, (z C/m)^2) on every coordinate that is shared, on no other."""
    text = f"dp(clip={clip}, noise={multiplier})"
    rounds = [at_server(text, ZERO.expand(many, -1), t) for t in range(2)]
    z = [got[:MANY] / (multiplier * clip / many) for got in rounds]
    for got in z:
        gaussian(got)
        assert related(got[1:], got[:-1]) < 5 and related(got[2:], got[:-2]) < 5
    assert related(*z) < 5, "rounds are independent"
    assert not rounds[0][MANY:].any(), "neither private entries nor padding"


def test_the_divisor_is_that_of_an_average_round():
    """Who was drawn and who trained changes the sum only, so one client changes it by clip at most."""
    deltas = torch.ones(3, LAYOUT.length, dtype=F64)
    assert at_server("dp(noise=0.0)", deltas, expected=7.0)[0] == 3 / 7
    assert at_server("dp(noise=0.0)", deltas)[0] == 1
    twice = [at_server("dp(noise=1.0)", ZERO.expand(3, -1), expected=m) for m in (5.0, 10.0)]
    torch.testing.assert_close(twice[0], 2 * twice[1])


@pytest.mark.parametrize("text", ["dp(clip=0.7)", "ldp(clip=0.7, noise=0.0)"])
def test_clipping(text):
    u = torch.where(torch.arange(len(ZERO)) < MANY, 0.01, 0).double()
    long, short = u / u.norm() * 30, u / u.norm() * 0.69
    assert abs(float(at_client(text, long).norm()) - 0.7) < 1e-12
    torch.testing.assert_close(at_client(text, long), long * (0.7 / 30))
    assert torch.equal(at_client(text, short), short) and torch.equal(at_client(text, ZERO), ZERO)


def test_the_noise_of_a_client():
    ends = [at_client("ldp(clip=0.5, noise=3.0)", ZERO, key) for key in keys(0, 0, torch.arange(2))]
    z = [end[:MANY] / 1.5 for end in ends]
    for got in z:
        gaussian(got)
        assert related(got[1:], got[:-1]) < 5
    assert related(*z) < 5, "clients are independent"
    assert not ends[0][MANY:].any()


def test_noise_is_added_once_in_a_run():
    """With next to no learning rate the model moves by the noise alone: z C/m, m the expected size of a cohort."""
    x = np.zeros((40, 1, 40, 40), dtype=np.float32)
    data = Dataset.of(x, np.zeros(40, dtype=np.int64), x, np.zeros(40, dtype=np.int64), classes=2)
    for cohort, many in ((4, 4), ("bernoulli(0.5)", 4)):
        ran = holdfast.run(method="dp(clip=1.0, noise=8.0)", data=data, split="iid(clients=8)", rounds=1, lr=1e-9,
                           cohort=cohort, model="logreg", normalize="half", threads=1)  # fmt: skip
        start = build("logreg", {}, (1, 40, 40), 2, 0)
        moved = ran.server.w.double() - Task.of(start).start.double()
        spread = float(moved[:3200].std())
        assert abs(spread / (8 / many) - 1) < 5 / math.sqrt(2 * 3200), cohort


# --- what is refused


REFUSED = {
    "dp + scaffold": "'scaffold' sends dc beside the update",
    "ldp + scaffold": "'scaffold' sends dc beside the update",
    "fedsmoo + dp": "'smoo' sends",
    "nova + ldp": "'nova' sends a beside",
    "eve + dp": "'eve' sends sq",
    "dp + sized": "'sized' sets the clients' weights",
    "disco + ldp": "'disco' sets the clients' weights",
    "dp + gh": "both fill 'merge'",
    "dp + topk": "'topk' changes the update after 'dp' has clipped it",
    "dp + quantize": "ldp, which adds its noise before",
    "dp + speed": "write 'speed' before 'dp'",
    "dp + ldp": "keep one",
    "dp(clip=0.0)": "clip must be > 0",
    "ldp(noise=-1.0)": "noise must be >= 0",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    with pytest.raises(Refused) as refused:
        parse(text)
    assert REFUSED[text] in str(refused.value)


NET = Task.of(build("mlp", {"hidden": 20, "layers": 1}, (1, 5, 5), 4, 0))
SAMPLE = Batch(torch.zeros(3, 1, 5, 5), torch.zeros(3, dtype=torch.int64), torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize(
    "text, said",
    [
        ("dp + dyn", "'dyn' reads what clients sent (cohort, mean), which 'dp' does not protect"),
        ("dp + gloss", "'gloss' reads what clients sent"),
        ("dp + lws", "'lws' reads what clients sent (cohort, deltas, live, mean)"),
        ("dp + cm", "'cm' reads what clients sent (cards, weighted, weights)"),
        ("ldp + cm", "'cm' reads what clients sent (cards)"),
    ],
)
def test_what_reads_the_updates_without_noise_is_refused(text, said):
    """Found by the run on meta tensors, so of a part that nobody has thought of too."""
    with pytest.raises(Refused) as refused:
        sheet(parse(text), NET, SAMPLE)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text", ["dp + adam", "dp + avgm + sam", "speed + dp", "dp + per", "dp + lesam + prox + server(lr=0.5)",
             "ldp + dyn", "ldp + gh", "ldp + quantize + adam", "ldp + lws", "ldp + topk"],
)  # fmt: skip
def test_what_only_goes_on_from_protected_numbers_may_stand(text):
    assert sheet(parse(text), NET, SAMPLE).individual == any(p in text for p in ("gh", "lws", "quantize", "topk"))


@pytest.mark.parametrize("text", ["dp", "ldp"])
def test_running_statistics_are_refused(text):
    net = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(25, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 4)
    )
    with pytest.raises(Refused, match=r"running statistics \(2.running_mean, ...\) would leave each client"):
        sheet(parse(text), Task.of(net), SAMPLE)


# --- the accountant


def renyi(noise: float, rate: float, rounds: int, delta: float) -> float:
    """Mironov, Talwar and Zhang 2019, eq. 3.3 at whole orders; Canonne, Kamath and Steinke 2020, prop. 12."""
    found: list[float] = []
    for a in range(2, 100):
        terms = [math.lgamma(a + 1) - math.lgamma(i + 1) - math.lgamma(a - i + 1) + (i * i - i) / (2 * noise**2)
                 + i * math.log(rate) + (a - i) * math.log1p(-rate) for i in range(a + 1)]  # fmt: skip
        top = max(terms)
        rdp = rounds * (top + math.log(sum(math.exp(t - top) for t in terms))) / (a - 1)
        found.append(rdp + math.log1p(-1 / a) - math.log(delta * a) / (a - 1))
    return min(found)


@pytest.mark.parametrize(
    "z, rate, rounds, delta", [(1.0, 0.1, 100, 1e-5), (2.0, 0.01, 5000, 1e-6), (4.0, 0.5, 30, 1e-4)]
)
def test_epsilon(z, rate, rounds, delta):
    """It also tries orders between whole ones, which can only be less."""
    pytest.importorskip("dp_accounting")
    wanted = renyi(z, rate, rounds, delta)
    assert 0.97 * wanted < privacy.epsilon(z, rate, rounds, delta) <= wanted * (1 + 1e-9)


def test_epsilon_of_everybody():
    """Without sampling: R a/(2 z^2) at order a (Mironov 2017, cor. 3), over 1 < a < 500."""
    pytest.importorskip("dp_accounting")
    z, rounds, delta = 5.0, 10, 1e-5
    orders = np.linspace(1.01, 500, 100_000)
    exact = (rounds * orders / (2 * z * z) + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)).min()
    assert exact * (1 - 1e-9) <= privacy.epsilon(z, 1.0, rounds, delta) < 1.02 * exact


def test_epsilon_at_the_ends():
    assert privacy.epsilon(0.0, 0.1, 10) == math.inf
    assert privacy.epsilon(1.0, 0.0, 10) == privacy.epsilon(1.0, 0.1, 0) == 0
    with pytest.raises(Refused) as refused:
        privacy.epsilon(-1.0, 2.0, -3, 0.0)
    assert len(refused.value.problems) == 4


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(Refused, match=r"pip install 'holdfast\[privacy\]'"):
        privacy.epsilon(1.0, 0.1, 10)
    assert privacy.told(parse("dp"), 0.1, 100, 10).startswith("epsilon is not counted")


TOLD: dict[str, tuple[str, Any, int, str]] = {
    "poisson": ("dp", 0.1, 10_000, " at sampling rate 0.1 (Poisson sampling)"),
    "few": ("dp", 0.1, 100, "; as a draw of nobody is repeated, delta is 0.00031"),
    "fixed": ("dp", 10, 100, 'exactly 10 of 100 carry no such guarantee: take --cohort "bernoulli(0.1)"'),
    "all": ("dp", 100, 100, "rounds with every client in each"),
    "sure": ("dp", 1.0, 100, "rounds with every client in each"),
    "local": ("ldp(noise=2.0)", 10, 100, "takes part in all of them and against everybody, the server included"),
}


@pytest.mark.parametrize("case", TOLD)
def test_the_line(case):
    """100 rounds; the last of Poisson sampling: R q (1 - q)^(N-1)/(1 - (1 - q)^N) = 2.95e-4 beside the 1e-5."""
    pytest.importorskip("dp_accounting")
    text, cohort, clients, end = TOLD[case]
    line = privacy.told(parse(text), cohort, clients, 100)
    rate = {"all": 1.0, "sure": 1.0, "local": 1.0}.get(case, 0.1)  # noise 2 between updates 2 clip apart: 1
    assert line.startswith(f"epsilon {privacy.epsilon(1.0, rate, 100):.3g} at delta 1e-05 after 100 rounds")
    assert line.endswith(end)


def test_nobody_alone_is_as_likely_as_it_says():
    """A draw of nobody is repeated, so a client is alone in a round with chance q (1-q)^(N-1)/(1 - (1-q)^N)."""
    clients, rate, many = 5, 0.2, 3000
    alone = sum(sample(7, t, clients, rate).tolist() == [2] for t in range(many)) / many
    chance = rate * (1 - rate) ** (clients - 1) / (1 - (1 - rate) ** clients)
    assert abs(alone - chance) < 5 * math.sqrt(chance / many)


def test_methods_without_privacy_say_nothing():
    assert privacy.told(parse("scaffold + topk"), 0.1, 100, 10) == ""
