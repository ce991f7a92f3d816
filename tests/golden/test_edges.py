"""Edge cases of every part and preset: the documented result (MS 13, 14), never NaN, never a traceback.

What the law `edges` and the one-liners of test_invariants.py check is not repeated: rounds of nobody, one client alone
and flat losses stay finite there; here is what they must give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor

import holdfast
from holdfast import catalogue
from holdfast.data import plan
from holdfast.data.sets import Dataset
from holdfast.errors import Failed
from holdfast.execute import Cohort, tensors
from holdfast.experiment import Run
from holdfast.laboratory import BATCH, CLIENTS, SEED, SIZES, Lab, State, same, samples, unsound
from holdfast.method import Method
from holdfast.parts import REGISTRY
from holdfast.presets import PRESETS
from holdfast.round import Up, absorb
from holdfast.slots import Loss
from holdfast.task import Batch
from holdfast.text import parse
from holdfast.vector import mapped

METHODS = list(dict.fromkeys([catalogue.standing(name)[1] for name in sorted(REGISTRY)] + [parse(p) for p in PRESETS]))
EMPTY, SINGLE = SIZES.index(0), SIZES.index(1)
LAB = Lab("group")


def every(but: Callable[[Method], Any] = lambda method: False) -> Any:
    chosen = [method for method in METHODS if not but(method)]
    return pytest.mark.parametrize("method", chosen, ids=lambda method: str(method).replace(" ", ""))


def has(method: Method, *names: str) -> bool:
    return any(p.name in names for p in method.parts)


def option(method: Method, part: str, key: str) -> Any:
    return next((p.options()[key] for p in method.parts if p.name == part), None)


# --- a client without samples


@every(but=lambda method: option(method, "eve", "count_empty") or has(method, "dp"))
def test_an_empty_client_is_not_there(method: Method) -> None:
    """MS 13: it takes no step, weighs nothing, is not counted in m: the round is that of the others.

    But for eve(count_empty=True), FedEve's public code, where empty clients shrink the variances (MS 8), and dp, whose
    divisor counts whoever was drawn: who has samples is nobody's business.
    """
    before = LAB.round(method, LAB.first(method), 0, ids=(0, 1, 4))
    with_, without = (LAB.round(method, before, 1, ids=ids) for ids in ((0, 1, EMPTY), (0, 1)))
    same(without.server, with_.server, 1e-12, "server")
    same(without.memory, with_.memory, 1e-12, "memory")


# --- one sample, one class


@every()
def test_one_sample(method: Method) -> None:
    assert not unsound(LAB.run(method, ids=(SINGLE,)))


@pytest.mark.parametrize("name", [name for name in ("univar", "uv", "decorr") if name in REGISTRY])
def test_terms_of_several_rows_vanish_for_one(name: str) -> None:
    """MS 13: variances, pairs and correlations of a batch of one sample are 0 or constant: FedAvg."""
    bare, with_ = (LAB.run(parse(text), ids=(SINGLE,)) for text in ("fedavg", name))
    same(bare[-1].server.w, with_[-1].server.w, 1e-12, name)


@dataclass(frozen=True)
class OneClass(Lab):
    """Every label is 0."""

    def feed(self, index: Tensor, live: Tensor, *_: object) -> Batch:
        batch = super().feed(index, live)
        return batch._replace(y=torch.zeros_like(batch.y))

    def cohort(self, memory: Any, t: int, ids: Any = None) -> Cohort:
        cohort = super().cohort(memory, t, ids)
        only = torch.zeros_like(cohort.cards["classes"])
        only[:, 0] = cohort.cards["n"]
        return cohort._replace(cards={**cohort.cards, "classes": only})


@every()
def test_one_class(method: Method) -> None:
    states = OneClass("group").run(method)
    assert not unsound(states)
    if has(method, "lc"):
        """MS 10.3: all other classes leave the softmax: the loss is 0 and nothing is learned."""
        assert torch.equal(states[-1].server.w, LAB.task(method).start)


# --- the server alone: one update, identical, opposite, zero ones


def moved(method: Method, change: Callable[[Tensor], Tensor], ids: tuple[int, ...]) -> tuple[Tensor, Tensor, State]:
    """By what the server moves in round 1, and the updates that it gets: those of `ids` after `change`."""
    first = LAB.first(method)
    task, bound = LAB.task(method), method.bound(tensors(method))
    down, got = LAB.down(bound, first.server), LAB.round(method, first, 0, ids=ids)
    assert isinstance(got.ups, Up)
    ups = mapped(lambda stack: stack[:1].expand_as(stack).clone(), got.ups)  # all clients are the first one
    ups = ups._replace(delta=change(ups.delta))
    population = torch.tensor(float(CLIENTS), dtype=LAB.dtype)
    server = absorb(
        bound, task, first.server, down, ups, torch.tensor(ids), population, plan.root(SEED), proxy=LAB.proxy
    )
    return server.w - first.server.w, ups.delta, State(server, {})


OWN = ("adam", "law", "lws")  # their steps have another length by design: MS 5, 12.3, 12.4; oracles compare them
OTHERS = ("topk", "quantize", "dp")  # the server gets no updates but records of them, or it adds noise


def factor(method: Method, many: int) -> float:
    """What one and the same update of `many` clients is multiplied by in round 1."""
    scale = 1.0
    if has(method, "dyn", "gloss"):
        scale *= 1 + many / CLIENTS  # ML 5.4, 5.12: the mean, and the server's dual over all N
    if has(method, "nova"):
        scale *= math.ceil(SIZES[0] / BATCH)  # MS 6: what is sent is divided by the client's steps
    if has(method, "pcgrad"):
        scale *= many  # MS 7: a sum
    if has(method, "avgm") and option(method, "avgm", "form") == "dampened":
        scale *= 1 - option(method, "avgm", "beta")
    return scale * (option(method, "server", "lr") or 1)


@every(but=lambda method: has(method, *OWN, *OTHERS))
def test_one_client_a_round(method: Method) -> None:
    """MS 13: every server method reduces to w_k; 14: a single participant has weight 1."""
    step, deltas, _ = moved(method, lambda stack: stack, (0,))
    torch.testing.assert_close(step, factor(method, 1) * deltas[0], atol=1e-12, rtol=1e-9)


@every(but=lambda method: has(method, *OWN, *OTHERS))
def test_identical_updates(method: Method) -> None:
    """MS 3 ii, 7, 8: nothing conflicts, nothing scatters, no weight matters: that update."""
    step, deltas, _ = moved(method, lambda stack: stack, (0, 1, 4))
    torch.testing.assert_close(step, factor(method, 3) * deltas[0], atol=1e-12, rtol=1e-9)


@every(but=lambda method: has(method, "law", "krum", *OTHERS))
def test_opposite_updates(method: Method) -> None:
    """MS 7: two exactly opposite updates vanish; of equal clients they do so in every mean, and FedEve's gain is 0.

    But for krum, which keeps one of the two, and law, which learns its weights.
    """
    step, _, state = moved(method, lambda stack: torch.stack((stack[0], -stack[1])), (0, 1))
    assert not unsound(state)
    torch.testing.assert_close(step, torch.zeros_like(step), atol=1e-12, rtol=0)


@every(but=lambda method: has(method, *OTHERS))
def test_zero_updates(method: Method) -> None:
    """MS 13: kept in averages, ignored as a reference to project on; no 0/0 anywhere. law shrinks what it likes."""
    step, _, state = moved(method, torch.zeros_like, (0, 1, 4))
    assert not unsound(state)
    assert has(method, "law") or torch.equal(step, torch.zeros_like(step))


@every(but=lambda method: has(method, "wd", "dp", "ldp") or method.slot(Loss))
def test_no_gradient_no_movement(method: Method) -> None:
    """ML 4.3: ||g|| = 0 gives e = 0, no perturbation of noise; nothing else pulls a model that stands still."""
    states = replace(LAB, still=True).run(method)
    assert not unsound(states)
    torch.testing.assert_close(states[-1].server.w, LAB.task(method).start, atol=1e-15, rtol=0)


# --- learning rates at the ends of what a float can hold


def data() -> Dataset:
    x, y = samples()
    return Dataset.of(x.numpy(), y.numpy(), x.numpy(), y.numpy(), classes=3)


DATA = data()
TINY: dict[str, Any] = {
    "data": DATA, "split": "iid(clients=4)", "model": "mlp(hidden=4)", "rounds": 3, "cohort": 2, "epochs": 2,
    "batch": 3, "dtype": "float64", "engine": "loop", "threads": 1,
} | ({"proxy": 0.2} if "proxy" in {field.name for field in fields(Run)} else {})  # fmt: skip


def finite(result: Any) -> bool:
    numbers = [v for row in result.metrics for v in row.values() if isinstance(v, float)]
    return all(map(math.isfinite, numbers)) and not unsound(result.server)


@every()
def test_a_tiny_learning_rate(method: Method) -> None:
    """Variates and momenta divide by K lr."""
    assert finite(holdfast.run(method=method, lr=1e-300, **TINY))


@every()
@pytest.mark.parametrize("lr", [1e3, 1e300])
def test_a_huge_learning_rate(method: Method, lr: float) -> None:
    """A run ends finite, or it stops and says which clients it lost, or that the server's state is lost."""
    try:
        assert finite(holdfast.run(method=method, lr=lr, **TINY))
    except Failed as failed:
        assert "not finite" in str(failed) and ("client" in str(failed) or "server" in str(failed))


@every()
def test_clients_that_diverge_are_left_out(method: Method) -> None:
    """MS 13: drop the client, log, renormalise; never average NaN."""
    try:
        result = holdfast.run(method=method, lr=1e300, on_nan="drop", **TINY)
    except Failed as failed:
        assert "the server's state is not finite" in str(failed)
        return
    assert not unsound(result.server)
