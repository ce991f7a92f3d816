"""Codecs and clipping against their oracles, in both engines, and beside methods with extras and duals."""

import numpy as np
import pytest
import torch
from _compare import BEGIN, CENTRES, COHORTS, CURVES, PROBLEM, STEPS, compare

from holdfast import noise
from holdfast.data.plan import keys
from holdfast.testing import trajectory

ENGINES = pytest.mark.parametrize("engine", ["loop", "batched"])


@ENGINES
@pytest.mark.parametrize("k", [0.1, 0.25, 0.3, 0.9])
@pytest.mark.parametrize("feedback", [True, False])
def test_topk(k, feedback, engine):
    """1, 2, 3 and 8 of 8 entries; clients are absent for rounds and come back to their residual."""
    plain = "fedavg" if k < 0.9 else ""
    compare(f"topk(k={k}, feedback={feedback})", "topk", {"k": k, "feedback": feedback}, engine, plain=plain)


def test_the_oracles_differ_with_and_without_feedback():
    found = [trajectory(f"topk(k=0.25, feedback={f})", *map(torch.as_tensor, (CURVES, CENTRES, BEGIN)), **PROBLEM)
             for f in (True, False)]  # fmt: skip
    assert (found[0] - found[1]).abs().max() > 1e-3


def drawn(t, k, steps):
    """The library's own random numbers; what is done with them is the oracle's."""
    key = noise.fold(keys(0, t, torch.tensor(k)), torch.tensor(steps), noise.tag("quantize"))
    return noise.uniform(key, torch.arange(8)).double().numpy()


@ENGINES
@pytest.mark.parametrize("bits, n", [(1, 1), (2, 2), (4, 14), (8, 254)])
@pytest.mark.parametrize("kind", ["stochastic", "nearest"])
def test_quantize(bits, n, kind, engine):
    options = {"n": n, "draw": drawn if kind == "stochastic" else None}
    compare(f"quantize(bits={bits}, kind='{kind}')", "quantize", options, engine)


@ENGINES
@pytest.mark.parametrize("clip", [0.2, 1.0])
def test_dp_without_noise(clip, engine):
    compare(f"dp(clip={clip}, noise=0.0)", "dp", {"clip": clip}, engine)
    assert any(len(S) == 1 for S in COHORTS) and len(set(STEPS)) > 1


@ENGINES
def test_dp_counts_whoever_was_drawn(engine):
    """Client 3 holds nothing: the divisor stays, so nobody sees that."""
    case = {"sizes": [3.0, 1.0, 5.0, 0.0, 4.0, 1.0], "steps": [3, 5, 1, 0, 2, 6]}
    compare("dp(clip=0.5, noise=0.0)", "dp", {"clip": 0.5}, engine, **case)


@pytest.mark.parametrize("text", ["scaffold + topk(k=0.3)", "dyn + topk(k=0.3)", "fedsmoo + topk(k=0.3)",
                                  "ldp(noise=0.1) + topk(k=0.3) + dyn", "scaffold + quantize(bits=4)"])  # fmt: skip
def test_beside_others_engines_agree(text):
    one, other = (
        trajectory(text, *map(torch.as_tensor, (CURVES, CENTRES, BEGIN)), **PROBLEM, engine=e)
        for e in ("loop", "batched")
    )
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10, atol=1e-10)
    bare = text.replace(" + topk(k=0.3)", "").replace(" + quantize(bits=4)", "")
    plain = trajectory(bare, *map(torch.as_tensor, (CURVES, CENTRES, BEGIN)), **PROBLEM)
    assert (one - plain).abs().max() > 1e-3, "the codec does something here"
