"""Parts beside parts that change what they read: found by review, each wrong once. AD, DE, ML, MS: see rig."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rig import BEGIN, CENTRES, CURVES, F64, close, quadratics

from holdfast.errors import Refused
from holdfast.parts.clip import Clip
from holdfast.text import parse
from holdfast.vector import Layout

COMPANY = [[0, 1, 2], [1, 3], [2], [0, 3], [0, 1]]
HEADED = Layout(("body", "head"), ((5,), (3,)), 8, head=("head",))


def rounds(text, many=5, **options):
    fed = quadratics(text, CURVES, CENTRES, BEGIN, **options)
    for t in range(many):
        fed.go({i: (3, 5, 1, 4)[i] for i in COMPANY[t % len(COMPANY)]})
    return fed


@pytest.mark.parametrize("text", ["eve + speed", "eve + freeze(mode='discard')", "eve + init", "eve + dyn"])
def test_eve_measures_the_updates_that_are_sent(text):
    """MS 8: R is the variance of the uploads, so ||u_k||^2 is that of what `speed` and `freeze` made of the update."""
    fed = rounds(text, layout=HEADED)
    close(fed.ups.parts["eve"]["sq"], fed.ups.delta.square().sum(1))


@pytest.mark.parametrize("text", ["dyn", "gloss", "dyn + init", "dyn + per"])
def test_duals_of_a_discarded_head_stay_zero(text):
    """ML 8.5.3: the server's dual is the mean of the clients'; a head that is thrown away has none."""
    beside = "" if "per" in text else " + freeze(mode='discard')"
    fed = rounds(text + beside, layout=HEADED)
    part, own, mean = ("gloss", "sigma", "sigma") if "gloss" in text else ("dyn", "h", "h")
    close(fed.state(part, mean), fed.memory[part][own].mean(0))
    assert not fed.memory[part][own][:, 5:].any() and fed.memory[part][own][:, :5].abs().max() > 1e-3


@pytest.mark.parametrize("text", ["prox(mu=0.5)", "dyn", "gloss"])
def test_an_active_clip_leaves_the_private_head_alone(text):
    """ML 2.1, MS 1.3: what the clip spares is the pull at shared weights; nothing pulls at private ones."""
    flat = torch.full_like(CURVES, 1e-9)  # no data gradient
    start = torch.full_like(BEGIN, 100.0)
    fed = quadratics(f"{text} + per + clip(max=0.001)", flat, torch.zeros_like(CENTRES), start, layout=HEADED)
    for _ in range(3):
        fed.go(5)
    close(fed.memory["private"]["w"], torch.full_like(fed.memory["private"]["w"], 100.0), 1e-2, 0)


def test_logits_of_awa_are_comparable_between_rounds():
    """MS 12.2: T_k = n_k/N or its logarithm; equal clients weigh equally whenever they came first."""
    for init in ("log", "fraction"):
        fed = quadratics(f"awa(lr=0.0, init='{init}')", CURVES, CENTRES, BEGIN, sizes=[2.0, 2.0, 2.0, 2.0])
        plain = quadratics("uniform", CURVES, CENTRES, BEGIN)
        for company in ([0], [1, 2, 3], [0, 1, 2, 3]):
            for f in (fed, plain):
                f.go(dict.fromkeys(company, 2))
        close(fed.server.w, plain.server.w)


def test_log_logits_are_fedavg_where_all_know_their_size():
    """MS 12.2: softmax(log n_k) is n_k/sum n, in every company."""
    awa, plain = (rounds(text, sizes=[3.0, 1.0, 5.0, 2.0]) for text in ("awa(lr=0.0, init='log')", "fedavg"))
    close(awa.server.w, plain.server.w)


REFUSED = {
    "cm + speed": "dyn \\+ sam", "cm + init": "drop one", "specgrad + speed(mix=0.5)": "write speed first",
    "uniform + median": "counts every client once", "uniform + pcgrad": "counts every client once",
    "awa + krum": "counts every client once", "disco + trimmed": "counts every client once",
    "specgrad(kind='lap', band='high')": "band", "specgrad(kind='lap', width=4.0)": "even width=4",
    "specgrad(kind='fft2', order='3210')": "order", "specgrad(width=3.0)": "width",
    "specgrad(pad='zero')": "pad", "specgrad(kind='block', pad='zero')": "pad", "specgrad(short='shrink')": "short",
    "adam(bias_correction=True)": "add v0='zero'", "fedyogi(bias_correction=True)": "add v0='zero'",
    "local_adam + scaffold": "no multiples", "local_adam + momentum": "keep one", "cm + local_adam": "no multiples",
    "local_adam + nova": "goes as far",
    "awa + nova": "compares clients' models", "awa + speed": "compares clients' models",
    "dyn(mean_n=50) + clip": "take scope='prox_inside'",
    "specgrad(kind='gauss', min_bins=1)": "min_bins", "specgrad(on_1x1='zero')": "on_1x1",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_be_wrong_or_idle_is_refused(text):
    with pytest.raises(Refused, match=REFUSED[text]):
        parse(text)


def test_speed_mixes_before_a_filter_whatever_the_text_says():
    """Sun et al. 2023, alg. 1: the mixed gradient is one gradient, and a filter takes it whole."""
    layout = Layout(("w",), ((8,),), 8)
    fed = quadratics("speed(mix=0.5, alpha=0.0) + specgrad(r=0.4)", CURVES, CENTRES, BEGIN, layout=layout)
    fed.go(3)
    assert float(torch.fft.rfft(fed.server.w - BEGIN)[:2].abs().max()) < 1e-12


def test_lesam_as_released():
    """ML 5.11, 1.5: tensor j is shifted by one number v_j, all over sum |v_j|; the norm is then far from rho."""
    layout = Layout(("a", "b", "c"), ((4,), (3,), (1,)), 8)
    fed = quadratics("lesam(rho=0.2, mode='released')", CURVES, CENTRES, BEGIN, layout=layout)
    fed.go(1)
    v = BEGIN - fed.server.w
    sizes = torch.tensor([4, 3, 1])
    e = 0.2 * torch.repeat_interleave(v[:3], sizes) / v[:3].abs().sum()
    before = fed.server.w.clone()
    fed.go(1)
    slopes = CURVES * (before + e - CENTRES)
    close(fed.server.w, before - 0.1 * slopes.mean(0))


def test_a_scale_that_clip_spares_has_no_private_part():
    """The unit that test_scopes_of_the_clip leaves out: a layout with private entries."""
    layout = HEADED.keeping(("head",))
    step: Any = SimpleNamespace(data=torch.zeros(8, dtype=F64), stiffness=0.5, w=torch.full((8,), 4.0), layout=layout)
    clip: Any = Clip(max=1e-9)
    got = clip.descend(torch.zeros(8, dtype=F64), {}, step)[0]
    close(got[:5], torch.full((5,), 2.0), 1e-6, 0)
    close(got[5:], torch.zeros(3), 1e-6, 0)
