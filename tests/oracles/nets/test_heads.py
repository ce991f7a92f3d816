"""Frozen, discarded and personal heads (MS 11, ML 13), MOON's numbers, and edge cases of whole rounds (MS 13)."""

import math

import _net
import numpy as np
import pytest
import torch
from _twin import F64, HEAD, X, Y, advance, federation, load, network, path

from holdfast.check import sheet
from holdfast.task import Batch, Task
from holdfast.text import parse

FIRST = dict(network().named_parameters())
METHODS = [
    "lc",
    "univar",
    "uv",
    "decorr",
    "moon",
    "sol",
    "sol(adaptive=True)",
    "freeze",
    "freeze(mode='discard')",
    "per",
]


def logits_of(fed):
    """The global model's, and its features."""
    everyone = Batch(X, Y, torch.ones(len(Y), dtype=torch.bool))
    out = fed.task.forward(fed.server.w, fed.server.buffers, everyone)
    return out.logits, out.hidden("test")


def head_as_it_began(fed):
    logits, features = logits_of(fed)
    want = torch.nn.functional.linear(features, *(FIRST[name] for name in HEAD))
    kept = fed.task.layout.split(fed.server.w)
    return torch.equal(logits, want) and all(torch.equal(kept[n], FIRST[n]) for n in HEAD if n in kept)


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize(
    "text",
    ["freeze", "freeze + wd(wd=0.1)", "freeze + scaffold", "freeze + avgm", "freeze + sam + momentum", "freeze + dyn"],
)
def test_a_frozen_head_stays(text, engine):
    """MS 11.1: bit-identical after 3 rounds, weight decay does not touch it; the body moves."""
    fed = federation(text, engine)
    for t in range(3):
        advance(fed, t)
        assert head_as_it_began(fed)
    assert not set(HEAD) & set(fed.task.layout.names)
    assert np.abs(path(text, engine)[:3, : _net.BODY] - _net.START[: _net.BODY]).max() > 1e-2


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("others", ["", " + wd(wd=0.1)", " + avgm", " + momentum", " + sam"])
def test_a_discarded_head_stays(others, engine):
    """MS 11.1: constant globally."""
    fed = federation("freeze(mode='discard')" + others, engine)
    for t in range(3):
        advance(fed, t)
        assert head_as_it_began(fed)
        assert not any(fed.task.layout.split(row)[name].any() for row in fed.ups.delta for name in HEAD)


def test_discarding_is_not_freezing():
    """MS 11.1: the body adapts to a head that moves within the round; local losses are the oracle's, and differ."""
    seen, got = {"frozen": {}, "discard": {}}, {"frozen": {}, "discard": {}}
    for mode in seen:
        load("freeze").trajectory(mode, seen[mode])
        fed = federation(f"freeze(mode='{mode}')")
        for t, ids in enumerate(_net.COMPANY):
            advance(fed, t)
            got[mode].update({(i, t): float(v) for i, v in zip(ids, fed.ups.card["loss"], strict=True)})
        assert got[mode].keys() == seen[mode].keys()
        np.testing.assert_allclose(list(got[mode].values()), list(seen[mode].values()), rtol=1e-9)
    assert all(abs(got["frozen"][key] - got["discard"][key]) > 1e-6 for key in seen["frozen"])


def cost(text):
    task = Task.of(network(), dtype=F64)
    return sheet(parse(text), task, Batch(X[:3], Y[:3], torch.ones(3, dtype=torch.bool)))


def test_traffic():
    """MS 2, 11.1: d - d_h both ways, for FedPer too; the head is no client state under freeze, d_h under FedPer."""
    body = 8 * _net.BODY
    for text in ("freeze", "fedbabu", "per"):
        got = cost(text)
        assert (got.model, got.down, got.up) == (body,) * 3
    assert cost("freeze").memory == 0 and cost("per").memory == 8 * _net.HEAD
    assert cost("fedavg").up == 8 * _net.SIZE
    assert cost("freeze + scaffold").up == cost("freeze + scaffold").down == 2 * body


def test_passes():
    """ML 2.3: FedSOL takes two backward passes and one forward of the frozen global model; MS 2: others one."""
    got = cost("sol")
    assert (got.passes, got.forwards) == (2, 1)
    assert (cost("sol(form='distance')").passes, cost("sol(form='distance')").forwards) == (1, 0)
    for text in ("lc", "univar", "uv", "decorr", "freeze"):
        assert (cost(text).passes, cost(text).forwards) == (1, 0)
        assert cost(text).memory == 0 and cost(text).up == cost(text).model


def test_freeze_of_other_layers():
    """Beginnings of names, as in FedPer: a frozen body is a moving head."""
    fed = federation("freeze(layers='0.')")
    advance(fed, 0)
    assert fed.task.layout.names == HEAD and not head_as_it_began(fed)


def test_value_of_moon():
    """MS 10.2: z = z_glob = z_prev -> log 2 for any T; the more like the global model, the less."""
    contrastive = load("moon").contrastive
    z = np.random.default_rng(1).normal(size=(5, 6))
    for tau in (0.1, 0.5, 2.0):
        assert abs(contrastive(z, z, z, tau) - math.log(2)) < 1e-12
        assert abs(contrastive(z, z, -z, tau) - math.log1p(math.exp(-2 / tau))) < 1e-12
    zero = np.zeros_like(z)
    assert abs(contrastive(zero, z, -z, 0.5) - math.log(2)) < 1e-12  # no length: cosine 0


# --- FedLC in rounds


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_absent_classes_stand_still(engine):
    """MS 10.3: the row of a class that a client has not is not touched; a client of one class does not move."""
    fed = federation("lc", engine)
    for t in range(2):  # in the second round clients 1, 2, 3
        advance(fed, t)
    weight, bias = (fed.task.layout.split(fed.ups.delta[0])[name] for name in HEAD)
    assert not weight[2].any() and not bias[2].any() and weight[:2].all()
    assert not fed.ups.delta[2].abs().max() > 1e-15
    losses = fed.ups.card["loss"]
    assert abs(losses[2]) < 1e-15 and losses[0] > 0.01


# --- edge cases


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", METHODS)
def test_small_and_poor_batches(text, engine):
    """MS 13: one sample, one sample twice, one class, an empty client: nothing is NaN, and all are handled alike."""
    fed = federation(text, engine)
    for _ in range(2):
        fed.round({0: [[0]], 1: [], 2: [[16, 16], [17, 17, 17]], 3: [[30, 31, 32], [33]]}, 0.2)
        for value in (fed.server.w, fed.ups.delta, fed.ups.card["loss"]):
            assert value.isfinite().all()
        assert not fed.ups.delta[1].any() and fed.ups.delta[2].any()
    before = fed.server.w
    fed.round({1: []}, 0.2)
    assert torch.equal(fed.server.w, before)


@pytest.mark.parametrize("text", ["univar", "uv", "decorr"])
def test_rounds_of_single_samples_are_fedavg(text):
    """MS 13: batches of one sample have no variance, no pairs and no correlation."""
    fed, plain = federation(text), federation("fedavg")
    for f in (fed, plain):
        f.round({i: [[row] for row in _net.OWN[i][:3]] for i in range(4)}, 0.2)
    np.testing.assert_allclose(fed.ups.card["loss"], plain.ups.card["loss"], rtol=1e-14)
    np.testing.assert_allclose(fed.server.w, plain.server.w, rtol=0, atol=1e-14)


@pytest.mark.parametrize("text", METHODS)
def test_engines_and_companions_agree(text):
    """Beside a corrector, momentum and another loss: `batched` gives what `loop` gives."""
    with_ = f"{text} + scaffold + momentum + decorr" if "decorr" not in text else f"{text} + scaffold + moon"
    loop, batched = path(with_), path(with_, "batched")
    assert np.isfinite(loop).all()
    np.testing.assert_allclose(loop, batched, rtol=1e-10, atol=1e-10)
