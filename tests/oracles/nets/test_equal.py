"""The library equals the oracles after every round, in both engines; neutral options are FedAvg (MS 14)."""

import _net
import numpy as np
import pytest
import torch
from _twin import advance, expected, federation, load, network, path


def same(got, want, tolerance=1e-9):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


SAME: dict[str, tuple[str, dict]] = {
    "lc": ("lc", {}),
    "lc(tau=0.1)": ("lc", {"tau": 0.1}),
    "univar": ("univar", {}),
    "univar(mu=0.0, lam=3.0)": ("univar", {"mu": 0.0, "lam": 3.0}),
    "univar(mu=0.0, lam=3.0, estimator='unbiased')": ("univar", {"mu": 0.0, "lam": 3.0, "estimator": "unbiased"}),
    "univar(mu=0.2, lam=0.0)": ("univar", {"mu": 0.2, "lam": 0.0}),
    "univar(mu=0.2, lam=0.0, eps=0.1)": ("univar", {"mu": 0.2, "lam": 0.0, "eps": 0.1}),
    "univar(self_pairs=True)": ("univar", {"self_pairs": True}),
    "univar(mu=0.1, lam=2.0, estimator='unbiased', eps=0.3)": (
        "univar", {"mu": 0.1, "lam": 2.0, "estimator": "unbiased", "eps": 0.3},
    ),
    "uv": ("uv", {}),
    "uv(mu=0.0, lam=1.5)": ("uv", {"mu": 0.0, "lam": 1.5}),
    "uv(mu=1.5, lam=0.0)": ("uv", {"mu": 1.5, "lam": 0.0}),
    "decorr": ("decorr", {}),
    "decorr(beta=1.0)": ("decorr", {"beta": 1.0}),
    "moon": ("moon", {}),
    "moon(mu=5.0, tau=1.0)": ("moon", {"mu": 5.0, "tau": 1.0}),
    "sol": ("sol", {}),
    "sol(rho=0.3, temperature=1.0)": ("sol", {"rho": 0.3, "T": 1.0}),
    "sol(floor=0.02)": ("sol", {"floor": 0.02}),  # between the lengths that occur
    "sol(adaptive=True)": ("sol", {"adaptive": True}),
    "sol(rho=0.2, form='distance')": ("sol", {"rho": 0.2, "form": "distance"}),
    "sol(rho=0.2, form='distance', adaptive=True)": ("sol", {"rho": 0.2, "form": "distance", "adaptive": True}),
    "sol(where='head')": ("sol", {"where": "head"}),
    "sol(where='body', adaptive=True)": ("sol", {"where": "body", "adaptive": True}),
    "scaffold(option='I')": ("scaffold", {}),  # from unequal batches: 5 and 4 rows, 5 and 1, 5, 5 and 4
    "freeze": ("freeze", {}),
    "freeze(mode='discard')": ("freeze", {"mode": "discard"}),
    "per": ("per", {}),
    "align": ("align", {}),
    "align(mu=1.5, width=0.5)": ("align", {"mu": 1.5, "width": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_the_network_and_its_rounds_are_the_same(engine):
    same(path("fedavg", engine), expected("fedavg"))


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", SAME)
def test_equals_its_oracle(text, engine):
    oracle, options = SAME[text]
    want, fed = expected(oracle, **options), federation(text, engine)
    for t in range(len(_net.COMPANY)):
        same(advance(fed, t), want[t])
    assert np.abs(want - expected("fedavg")).max() > 1e-3  # the case tells the method from FedAvg


def test_every_case_differs():
    """No option is without an effect, but `self_pairs`, which adds a constant (MS 9.2)."""
    paths = {text: expected(oracle, **options) for text, (oracle, options) in SAME.items()}
    np.testing.assert_allclose(paths.pop("univar(self_pairs=True)"), paths["univar"], rtol=0, atol=1e-12)
    ends = list(paths.values())
    assert min(np.abs(a - b).max() for k, a in enumerate(ends) for b in ends[:k]) > 1e-4


def test_presets_are_their_parts():
    for preset, text in {
        "fedlc": "lc", "univarfl": "univar", "feduv": "uv", "feddecorr": "decorr", "fedsol": "sol", "fedper": "per",
        "fedbabu": "freeze", "fedalign": "align",
    }.items():  # fmt: skip
        np.testing.assert_array_equal(path(preset), path(text))


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_clients_keep_what_the_oracles_keep(engine):
    """MS 10.2: the last local model; MS 11.2: the own head. Who never came keeps what all began with."""
    last, heads = {}, {}
    load("moon").trajectory(last=last)
    load("per").trajectory(heads=heads)
    moon, per = federation("moon", engine), federation("per", engine)
    for t in range(len(_net.COMPANY)):
        advance(moon, t)
        advance(per, t)
    for i in range(len(_net.OWN)):
        same(moon.memory["moon"]["w"][i][: _net.SIZE], last[i])
        same(per.memory["private"]["w"][i], heads[i])


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize(
    "text",
    ["lc(tau=0.0)", "univar(mu=0.0, lam=0.0)", "uv(mu=0.0, lam=0.0)", "decorr(beta=0.0)", "moon(mu=0.0)", "sol(rho=0)"],
)
def test_neutral_options_are_fedavg(text, engine):
    """MS 14, ML 5.13; tau = 0 also lifts the mask of FedLC, for 1 and 3 are clients without a class."""
    same(path(text, engine), path("fedavg", engine), 1e-13)


def test_sol_of_no_radius_beside_momentum():
    """ML 5.13: rho = 0 -> FedAvg with momentum."""
    same(path("sol(rho=0) + momentum"), path("momentum"), 1e-13)


def test_equal_counts_are_cross_entropy():
    """MS 10.3, ML 5.14."""
    counts = np.full((4, 3), 7)
    same(path("lc", classes=counts), path("fedavg"), 1e-12)


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", ["sol", "sol(adaptive=True)", "sol(form='distance')"])
def test_the_first_step_of_sol_has_no_perturbation(text, engine):
    """ML 5.13, 'threshold it': w = w^t, so the first step is FedAvg's to the last bit, in a later round too."""
    sol, plain = federation(text, engine), federation("fedavg", engine)
    advance(sol, 0)
    plain.server = sol.server._replace(parts={})
    for fed in (sol, plain):
        fed.round({i: _net.batches(i, 1)[:1] for i in range(4)}, 0.3)
    assert torch.equal(sol.server.w, plain.server.w)
    for fed in (sol, plain):
        fed.round({i: _net.batches(i, 1)[:2] for i in range(4)}, 0.3)
    assert (sol.server.w - plain.server.w).abs().max() > 1e-4


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("layer", [torch.nn.Dropout(0.4), torch.nn.BatchNorm1d(_net.HIDDEN)])
def test_both_models_of_sol_are_evaluated(layer, engine):
    """ML 5.13: no mask and no batch statistic stands between w and w^t, so the first step has no perturbation."""
    body, tanh, head = network()
    ends = []
    for text in ("sol", "fedavg"):
        fed = federation(text, engine, net=torch.nn.Sequential(body, layer, tanh, head).double())
        fed.round({i: _net.batches(i, 0)[:1] for i in range(4)}, 0.3)
        ends.append(fed.server.w)
    assert torch.equal(*ends)


def test_gradient_of_the_oracles():
    """The complex step against torch on the same network."""
    net = network()
    x, y = torch.tensor(_net.X), torch.tensor(_net.Y)
    torch.nn.functional.cross_entropy(net(x), y).backward()
    want = torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None])
    got = _net.gradient(lambda w: _net.plain(w, _net.X, _net.Y), _net.START)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)
