"""The later parts against their golden rows and, on the harder problem, against their oracles."""

from typing import Any

import golden
import numpy as np
import pytest
import torch
from _compare import BEGIN, CENTRES, COHORTS, CURVES, P8, PROBLEM, STEPS, applied, compare, drawn
from _run import exact, load, rows

from holdfast.data.plan import keys
from holdfast.slots import Round, Update
from holdfast.task import Task
from holdfast.testing import quadratic, trajectory
from holdfast.text import parse
from holdfast.vector import Layout

ENGINES = pytest.mark.parametrize("engine", ["loop", "batched"])


@ENGINES
@pytest.mark.parametrize("name", golden.MORE)
def test_golden_rows(name, engine):
    row = golden.MORE[name]
    rows(trajectory(row["text"], *P8, rounds=3, steps=5, lr=golden.LR, engine=engine).numpy(), row["rows"])


WIDE: dict[str, Any] = {
    "cohort": [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [0, 2, 3, 5], [4], [0, 1, 3]]
}  # enough for Krum's neighbours
PROXY = {"proxy": (CURVES[5], CENTRES[0])}
COUNTS = [[9.0, 0, 0], [4, 4, 4], [0, 1, 5], [2, 0, 0], [3, 2, 1], [0, 0, 7]]
EMPTY: dict[str, Any] = {
    "sizes": [3.0, 0, 5, 2, 4, 0],
    "steps": [3, 0, 1, 4, 2, 0],
    "cohort": [[0, 1, 2], [2, 4], [1, 3, 5], [0, 2, 4, 5]],
}

SAME: dict[str, tuple] = {  # text: (oracle, its options, what else `compare` gets)
    "scaffold(option='I')": ("scaffold", {"option": "I"}, {"plain": "scaffold"}),
    "cm(alpha=0.3, form='unscaled')": ("cm", {"alpha": 0.3, "form": "unscaled"}),
    "cm(form='unscaled') + sam(rho=0.2)": ("mofedsam", {"form": "unscaled", "rho": 0.2}),
    "speed": ("speed", {}, {"plain": "fedspeed"}),
    "speed(rho=0.2, alpha=0.3, mix=0.4)": ("speed", {"rho": 0.2, "alpha": 0.3, "mix": 0.4}),
    "gloss": ("gloss", {}),
    "gloss(rho_g=0.3, beta=4.0, form='code')": ("gloss", {"rho": 0.3, "beta": 4.0, "form": "code"}),
    "gloss(rho_g=0.3, rho0=0.02, warm=4)": ("gloss", {"rho": 0.3, "rho0": 0.02, "warm": 4}),
    "gloss(rho_g=0.3, rho0=0.02, warm=3, schedule='released', rho_l=0.2)": (
        "gloss", {"rho": 0.3, "rho0": 0.02, "warm": 3, "schedule": "released", "rho_l": 0.2},
    ),
    "gloss(rho_g=0.01, warm=2, schedule='released', rho_l=0.2) + sam(rho=0.2)": (
        "gloss", {"rho": 0.01, "warm": 2, "schedule": "released", "rho_l": 0.2, "rho_local": 0.2},
    ),
    "gloss(rho_g=0.2) + sam(rho=0.15)": ("gloss", {"rho": 0.2, "rho_local": 0.15}),
    "fedgloss": ("gloss", {"rho_local": 0.1}),
    "sol(form='distance')": ("sol", {}),
    "sol(rho=0.3, form='distance', floor=0.4)": ("sol", {"rho": 0.3, "floor": 0.4}),
    "sol(rho=0.3, form='distance', adaptive=True)": ("sol", {"rho": 0.3, "adaptive": True}),
    "adam(rule='yogi')": ("adam", {"rule": "yogi"}, {"plain": "adam"}),
    "fedyogi": ("adam", {"rule": "yogi"}),
    "adam(rule='yogi', v0='zero', bias_correction=True)": (
        "adam", {"rule": "yogi", "v0": "zero", "bias_correction": True},
    ),
    "adam(rule='adagrad')": ("adam", {"rule": "adagrad"}),
    "fedadagrad": ("adam", {"rule": "adagrad", "beta1": 0.0}),
    "disco": ("disco", {}, {"given": {"classes": COUNTS}}),
    "disco(a=2.0, b=0.0)": ("disco", {"pull": 2.0, "lift": 0.0}, {"given": {"classes": COUNTS}}),
    "disco(a=0.3, metric='l1')": ("disco", {"pull": 0.3, "metric": "l1"}, {"given": {"classes": COUNTS}}),
    "disco(a=0.3, metric='l2')": ("disco", {"pull": 0.3, "metric": "l2"}, {"given": {"classes": COUNTS}}),
    "disco(a=0.3, metric='cosine')": ("disco", {"pull": 0.3, "metric": "cosine"}, {"given": {"classes": COUNTS}}),
    "awa": ("awa", {}),
    "awa(lr=0.2)": ("awa", {"awa_lr": 0.2}),
    "awa(lr=0.2, init='log')": ("awa", {"awa_lr": 0.2, "init": "log"}),
    "awa(lr=0.2, distance='euc', keep=True)": ("awa", {"awa_lr": 0.2, "distance": "euc", "keep": True}),
    "awa(lr=0.2, keep=True, gamma=0.9)": ("awa", {"awa_lr": 0.2, "keep": True, "gamma": 0.9}),
    "lws": ("lws", {}),
    "lws(beta=0.4, low=0.05, high=0.6)": ("lws", {"beta": 0.4, "low": 0.05, "high": 0.6}),
    "law": ("law", {}, {"given": PROXY}),
    "law(lr=0.1, epochs=45)": (  # three rates: halved twice
        "law", {"law_lr": 0.1, "epochs": 45}, {"given": PROXY},
    ),
    "law(lr=0.05, form='quad')": (
        "law", {"law_lr": 0.05, "form": "quad"}, {"given": PROXY},
    ),
    "law(lr=0.05, form='quad', start='uniform')": (
        "law", {"law_lr": 0.05, "form": "quad", "start": "uniform"}, {"given": PROXY},
    ),
    "law(lr=0.05, swa=True)": ("law", {"law_lr": 0.05, "swa": True}, {"given": PROXY}),
    "law(form='quad', start='uniform', swa=True, epochs=44)": (  # past the end of the annealing
        "law", {"form": "quad", "start": "uniform", "swa": True, "epochs": 44}, {"given": PROXY},
    ),
    "law(swa=True, epochs=12)": ("law", {"swa": True, "epochs": 12}, {"given": PROXY}),  # no weights to average
    "pcgrad(form='code')": ("pcgrad", {"form": "code"}, WIDE),
    "median": ("robust", {}, WIDE),
    "trimmed(beta=0.3)": ("robust", {"rule": "trimmed", "beta": 0.3}, WIDE),
    "krum": ("robust", {"rule": "krum"}, WIDE),
    "krum(f=2)": ("robust", {"rule": "krum", "f": 2}, WIDE),
    "krum(f=3, m=3)": ("robust", {"rule": "krum", "f": 3, "m": 3}, WIDE),
    "eve(predict='none')": ("eve", {"predict": "none"}, {"plain": None}),
    "eve(predict='last')": ("eve", {"predict": "last"}, {"plain": "eve"}),
    "eve(q_mode='energy', r_mean='uniform', count_empty=True)": (
        "eve", {"q_mode": "energy", "r_mean": "uniform", "count_empty": True}, EMPTY,
    ),
    "eve(count_empty=True)": ("eve", {"count_empty": True}, EMPTY),
    "fedeve_code": ("eve", {"q_mode": "energy", "r_mean": "uniform", "count_empty": True}, EMPTY),
    "specgrad(r=0.45, band='high')": ("filtered", {"r": 0.45, "band": "high"}),
    "specgrad(r=0.1, min_bins=1)": ("filtered", {"r": 0.1, "min_bins": 1}),
    "specgrad(r=0.45, match='tensor')": ("filtered", {"r": 0.45, "match": "tensor"}),
    "specgrad(r=0.45, match='model')": ("filtered", {"r": 0.45, "match": "model"}),
    "specgrad(r=0.45, kind='lap')": ("filtered", {"r": 0.45, "kind": "lap"}),
    "specgrad(kind='lap', width=5.0, match='tensor')": ("filtered", {"kind": "lap", "width": 5.0, "match": "tensor"}),
    "specgrad(r=0.45, kind='gauss')": ("filtered", {"r": 0.45, "kind": "gauss"}),
    "specgrad(kind='gauss', width=0.7)": ("filtered", {"kind": "gauss", "width": 0.7}),
    "prox(mu=0.3) + specgrad(r=0.45, kind='lap', on='all')": (
        "filtered", {"r": 0.45, "kind": "lap", "on": "all", "mu": 0.3},
    ),
    "prox(mu=0.3) + specgrad(r=0.45, kind='lap')": ("filtered", {"r": 0.45, "kind": "lap", "mu": 0.3}),
    "prox(mu=0.3) + specgrad(r=0.45, on='all') + wd(wd=0.05)": (
        "filtered", {"r": 0.45, "on": "all", "mu": 0.3, "wd": 0.05},
    ),
    "l2(r=0.45)": ("filtered", {"name": "l2", "r": 0.45}),
    "l2(form='cap', max=0.7)": ("filtered", {"name": "l2", "form": "cap", "max": 0.7}),
    "gc(per='tensor')": ("filtered", {"name": "gc", "per": "tensor"}),
    "sam(rho=0.3) + specpert(r=0.45, band='high')": ("perturbed", {"rho": 0.3, "r": 0.45, "band": "high"}),
    "sam(rho=0.3) + specpert(r=0.45, match='tensor')": ("perturbed", {"rho": 0.3, "r": 0.45, "match": "tensor"}),
    "sam(rho=0.3) + specpert(r=0.45, match='model')": ("perturbed", {"rho": 0.3, "r": 0.45, "match": "model"}),
    "sam(rho=0.3) + gcpert(per='tensor')": ("perturbed", {"rho": 0.3, "name": "gcpert", "per": "tensor"}),
    "sam(rho=0.3) + l2pert(r=0.45)": ("perturbed", {"rho": 0.3, "name": "l2pert", "r": 0.45}),
    "sam(rho=0.3) + l2pert(form='cap')": ("perturbed", {"rho": 0.3, "name": "l2pert", "form": "cap"}),
    "sam(rho=0.3) + coordclip(c=0.8)": ("perturbed", {"rho": 0.3, "name": "coordclip", "c": 0.8}),
    "sam(rho=0.3) + coordclip(c=1.5, per='model')": (
        "perturbed", {"rho": 0.3, "name": "coordclip", "c": 1.5, "per": "model"},
    ),
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("text", SAME)
def test_equals_its_oracle(text, engine):
    oracle, options, *more = SAME[text]
    compare(text, oracle, options, engine, **(more[0] if more else {}))


WITH_EMPTY: dict[str, Any] = {
    "gloss": ("gloss", {}),
    "speed": ("speed", {}),
    "sol(form='distance')": ("sol", {}),
    "scaffold(option='I')": ("scaffold", {"option": "I"}),
    "disco(a=0.3)": ("disco", {"pull": 0.3}, {"given": {"classes": COUNTS}}),
    "awa(lr=0.2, keep=True)": ("awa", {"awa_lr": 0.2, "keep": True}),
    "lws(beta=0.4)": ("lws", {"beta": 0.4}),
    "law(lr=0.1)": ("law", {"law_lr": 0.1}, {"given": PROXY}),
    "median": ("robust", {}),
    "trimmed(beta=0.4)": ("robust", {"rule": "trimmed", "beta": 0.4}),
    "krum(m=2)": ("robust", {"rule": "krum", "m": 2}),
    "pcgrad(form='code')": ("pcgrad", {"form": "code"}),
    "eve(predict='last')": ("eve", {"predict": "last"}),
}


@ENGINES
@pytest.mark.parametrize("text", WITH_EMPTY)
def test_clients_without_samples(text, engine):
    """They count nowhere but in N (MS 13)."""
    oracle, options, *more = WITH_EMPTY[text]
    compare(text, oracle, options, engine, **EMPTY, **(more[0] if more else {}))


def test_lws_buckets():
    """Tensors up to and including a bias shrink together (MS 12.3), and no vector's padding counts."""
    shapes = {"a.weight": (3, 2), "norm.weight": (3,), "norm.bias": (3,), "fc.weight": (2, 3), "fc.bias": (2,)}
    layout = Layout.of({name: torch.zeros(shape) for name, shape in shapes.items()})
    draw = np.random.default_rng(3)
    w, deltas = np.zeros(layout.length), np.zeros((4, layout.length))
    w[: layout.size], deltas[:3, : layout.size] = draw.normal(size=20), draw.normal(size=(3, 20))
    delta, live = np.array([0.5, 0.3, 0.2, 0]) @ deltas, torch.tensor([True, True, True, False])
    task = Task.of(quadratic, layout=layout, dtype=torch.float64).having(start=torch.as_tensor(w))
    zero = torch.zeros((), dtype=torch.float64)
    r = Round(
        task, torch.as_tensor(w), torch.as_tensor(w), zero, zero.long(), zero.long(), torch.arange(4),
        {"n": torch.ones(4, dtype=torch.float64)}, live, zero + 3, zero + 9, torch.as_tensor(deltas), st={},
    )  # fmt: skip
    part = parse("lws(beta=0.1)").slot(Update)[0]
    got = w + part.update(torch.as_tensor(delta), r)[0].numpy()
    lws, edges = load("lws"), np.cumsum([0, *layout.sizes])
    for bucket in lws.buckets(list(shapes)):
        at = slice(edges[bucket[0]], edges[bucket[-1] + 1])
        gamma = lws.gamma(w[at], (w + delta)[at], list(deltas[:3, at]), 0.1, 0.01, 0.2)
        np.testing.assert_allclose(got[at], gamma * (w + delta)[at], rtol=1e-12)
    assert not got[layout.size :].any()


CONV = (2, 1, 2, 2)
SHAPED: dict[str, tuple[str, dict, tuple[int, ...]]] = {
    "gc(match='tensor')": ("filtered", {"name": "gc", "match": "tensor"}, (4, 2)),
    "gc(per='kernel')": ("filtered", {"name": "gc", "per": "kernel"}, (1, 2, 2, 2)),
    "gc(per='tensor')": ("filtered", {"name": "gc", "per": "tensor"}, (4, 2)),
    "gc(per='live')": ("filtered", {"name": "gc", "per": "live"}, CONV),
    "gc(per='live', match='model')": ("filtered", {"name": "gc", "per": "live", "match": "model"}, (4, 2)),
    "sam(rho=0.3) + gcpert": ("perturbed", {"rho": 0.3, "name": "gcpert"}, (4, 2)),
    "sam(rho=0.3) + gcpert(per='kernel', match='model')": (
        "perturbed", {"rho": 0.3, "name": "gcpert", "per": "kernel", "match": "model"}, (1, 2, 2, 2),
    ),
    "sol(rho=0.3, form='distance', adaptive=True)": ("sol", {"rho": 0.3, "adaptive": True, "shape": (4, 2)}, (4, 2)),
    "specgrad(r=0.45, order='2301')": ("filtered", {"r": 0.45, "order": "2301"}, CONV),
    "specgrad(r=0.45, order='1230', match='tensor')": (
        "filtered", {"r": 0.45, "order": "1230", "match": "tensor"}, CONV,
    ),
    "specgrad(r=0.45, order='2301', scope='conv')": ("filtered", {"r": 0.45, "order": "2301"}, CONV),
    "specgrad(r=0.45, order='2301', scope='matrix')": ("filtered", {"r": 0.45}, (4, 2)),
    "specgrad(kind='fft2')": ("filtered", {"kind": "fft2"}, CONV),
    "specgrad(r=0.3, kind='fft2')": ("filtered", {"kind": "fft2", "r": 0.3}, (1, 1, 4, 2)),
    "specgrad(r=0.4, kind='fft2', on_1x1='hp1d')": (
        "filtered", {"kind": "fft2", "r": 0.4, "on_1x1": "hp1d"}, (4, 2, 1, 1),
    ),
    "specgrad(kind='fft2', on_1x1='zero')": ("filtered", {"kind": "fft2", "on_1x1": "zero"}, (4, 2, 1, 1)),
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("text", SHAPED)
def test_equals_its_oracle_on_a_shape(text, engine):
    oracle, options, shape = SHAPED[text]
    compare(text, oracle, {**options, "shape": shape} if oracle != "sol" else options, engine, shape=shape)


@ENGINES
@pytest.mark.parametrize("per", ["live", "channel"])
def test_dead_taps(per, engine):
    """No curvature at tap (0, 1): its gradient is exactly zero, and only 'live' leaves its two entries alone."""
    curves = CURVES * np.array([1, 0, 1, 1, 1, 0, 1, 1])
    options = {"name": "gc", "per": per, "shape": CONV}
    compare(f"gc(per='{per}')", "filtered", options, engine, shape=CONV, curves=curves)
    problem = {**PROBLEM, "engine": engine, "shape": CONV}
    moved = trajectory(f"gc(per='{per}')", *map(torch.as_tensor, (curves, CENTRES, BEGIN)), **problem)
    assert (np.abs(moved[-1].numpy() - BEGIN)[[1, 5]].max() == 0) == (per == "live")


@ENGINES
@pytest.mark.parametrize("text", ["gh(test_on='original')", "gh(keep='length')", "gh(keep='direction')", "pcgrad"])
def test_visiting_orders(text, engine):
    oracle, _, option = text.rstrip(")").partition("(")
    options = dict([option.replace("'", "").split("=")]) if option else {}
    compare(text, oracle, {**options, "order": drawn(oracle)}, engine, **WIDE)


@ENGINES
@pytest.mark.parametrize("form", ["paper", "code"])
def test_pcgrad_may_meet_itself(form, engine):
    """Three updates of which the third turns against its own original; only 'code' projects it once more (MS 7)."""
    problem = exact([0.8, -0.5], [0.2, -1.3], [-0.5, 1.4])
    order = drawn("pcgrad") if form == "paper" else None
    case = {"rounds": 1, "steps": 1, "lr": 1.0}
    expected = load("pcgrad").trajectory(*problem, **case, form=form, order=order)
    got = trajectory(f"pcgrad(form='{form}')", *map(torch.as_tensor, problem), **case, engine=engine)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)


def missing(text: str, key: int | torch.Tensor = 0, step: int = 0) -> list[int]:
    """Which rFFT bins a filter takes out of a tensor of eight entries."""
    impulse = np.eye(8)[0]  # all bins are one
    return [i for i, x in enumerate(np.fft.rfft(applied(text, [impulse], ["weight"], key, step)[0])) if abs(x) < 1e-12]


@ENGINES
@pytest.mark.parametrize("filter", ["specgrad", "specpert"])
@pytest.mark.parametrize("draw", [0, 3])
def test_random_bins(filter, draw, engine):
    """k of the L bins, the same ones everywhere; which, the part's own draw decides."""
    text = f"{filter}(r=0.45, band='random', draw={draw})"
    text, oracle = (f"sam + {text}", "perturbed") if filter == "specpert" else (text, "filtered")
    gone = missing(text)
    assert len(gone) == 2 and gone == missing(text, key=5, step=3)
    compare(text, oracle, {"r": 0.45, "removed": gone}, engine)


@ENGINES
@pytest.mark.parametrize("filter", ["specgrad", "specpert"])
def test_fresh_bins(filter, engine):
    """k new bins at every step of every client."""
    text = f"{filter}(r=0.45, band='fresh')"
    text, oracle = (f"sam + {text}", "perturbed") if filter == "specpert" else (text, "filtered")

    def removed(t, k, i):
        gone = missing(text, keys(0, t, torch.tensor(k)), i)
        assert len(gone) == 2
        return gone

    sets = {tuple(removed(t, k, i)) for t in range(6) for k in COHORTS[t % 5] for i in range(STEPS[k])}
    assert len(sets) >= 8  # of the ten pairs, in 51 steps
    compare(text, oracle, {"r": 0.45, "removed": removed}, engine)
