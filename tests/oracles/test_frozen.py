"""Golden rows that no spec prints: of forms of official codes, frozen from the NumPy oracles on P8 (ML 8.1).

They say that nothing has moved, not that it is right: the oracles say that. (w_0, w_7, ||w||) after rounds 1, 2, 3,
from the oracles of this folder in November 2026; K = 5, lr 0.1, both clients, equal weights.
"""

from typing import Any

import golden
import pytest
from _compare import P8
from _run import rows, run

from holdfast.testing import trajectory

FROZEN: dict[str, dict[str, Any]] = {
    "cm(form='unscaled')": {
        "oracle": "cm",
        "options": {"form": "unscaled"},
        "rows": {
            1: (-0.131405, 1.50934, 2.283343),
            2: (-0.279917, 2.411176, 3.536102),
            3: (-0.359578, 2.875338, 4.182388),
        },
    },
    "cm(form='unscaled') + sam": {
        "oracle": "mofedsam",
        "options": {"form": "unscaled"},
        "rows": {
            1: (-0.143816, 1.531975, 2.309685),
            2: (-0.298389, 2.438866, 3.5691),
            3: (-0.370365, 2.877863, 4.184528),
        },
    },
    "scaffold(option='I')": {
        "oracle": "scaffold",
        "options": {"option": "I"},
        "rows": {
            1: (-0.131405, 1.50934, 2.283343),
            2: (-0.246744, 1.888826, 2.796612),
            3: (-0.297284, 2.055766, 3.025809),
        },
    },
    "prox(mu=0.1) + clip(max=1.0, scope='data_only') + wd(wd=0.01)": {
        "oracle": "clip",
        "options": {"max": 1.0, "scope": "data_only", "mu": 0.1, "wd": 0.01},
        "rows": {
            1: (-0.084984, 0.890148, 1.39248),
            2: (-0.161966, 1.05983, 1.593658),
            3: (-0.230444, 1.208471, 1.776973),
        },
    },
    "dyn(alpha=0.1) + clip(max=1.0, scope='data_only') + wd(wd=0.01)": {
        "oracle": "clipped",
        "options": {"name": "feddyn", "scope": "data_only"},
        "rows": {
            1: (-0.169967, 1.080297, 1.621149),
            2: (-0.381527, 1.543989, 2.216045),
            3: (-0.585756, 1.987246, 2.808481),
        },
    },
    "scaffold + clip(max=1.0, scope='data_only') + wd(wd=0.01)": {
        "oracle": "clipped",
        "options": {"name": "scaffold", "scope": "data_only"},
        "rows": {
            1: (-0.086697, 0.893992, 1.396939),
            2: (-0.163914, 1.058416, 1.592365),
            3: (-0.232442, 1.202172, 1.770248),
        },
    },
    "lesam(mode='released')": {
        "oracle": "lesam",
        "options": {"mode": "released"},
        "rows": {
            1: (-0.131405, 1.50934, 2.283343),
            2: (-0.245823, 1.815054, 2.672762),
            3: (-0.29835, 1.951452, 2.850034),
        },
    },
}


@pytest.mark.parametrize("text", FROZEN)
def test_oracles_have_not_moved(text):
    row = FROZEN[text]
    rows(run(row["oracle"], **row["options"]), row["rows"])


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", FROZEN)
def test_the_library_equals_them(text, engine):
    path, plain = (
        trajectory(method, *P8, rounds=3, steps=5, lr=golden.LR, engine=engine) for method in (text, "fedavg")
    )
    rows(path.numpy(), FROZEN[text]["rows"])
    assert (path[1:] - plain[1:]).abs().max() > 1e-3
