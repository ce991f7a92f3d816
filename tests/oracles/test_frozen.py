"""Golden rows that no spec prints: of forms of official codes, frozen from the NumPy oracles on P8 (ML 8.1).

They say that nothing has moved, not that it is right: the oracles say that. (w_0, w_7, ||w||) after rounds 1, 2, 3,
from the oracles of this folder in November 2026; K = 5, lr 0.1, both clients, equal weights but where `sizes` stand.
HARD: the same of the problem of `_compare.py`, at its falling rates, where two clients do not tell the forms apart.
"""

from typing import Any

import golden
import numpy as np
import pytest
import torch
from _compare import BEGIN, CENTRES, CURVES, P8, PROBLEM, drawn
from _run import exact, load, rows, run
from test_more_parts import EMPTY, PROXY, WIDE

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
    "scaffold(scale=0.1)": {  # ML 1.5: FedLESAM-S as released
        "oracle": "scaffold",
        "options": {"scale": 0.1},
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.195699, 1.871707, 2.783767),
            3: (-0.228760, 2.034433, 3.008222),
        },
    },
    "lesam + scaffold(scale=0.1)": {
        "oracle": "fedlesam_s",
        "options": {"scale": 0.1},
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.201946, 1.911107, 2.838645),
            3: (-0.238405, 2.091478, 3.087612),
        },
    },
    "gloss(warm=2, schedule='released', rho_l=0.2)": {  # ML 1.15: by its slip rho_l in rounds 2 and 3
        "oracle": "gloss",
        "options": {"warm": 2, "schedule": "released", "rho_l": 0.2},
        "rows": {
            1: (-0.257879, 2.287127, 3.364155),
            2: (-0.396118, 3.080348, 4.468945),
            3: (-0.553072, 2.813030, 4.019975),
        },
    },
    "dyn(mean_n=2.0)": {  # ML 5.4: alpha / weight_i
        "oracle": "dyn",
        "options": {"code": True},
        "sizes": [3.0, 1.0],
        "rows": {
            1: (-0.242503, 2.287910, 3.375816),
            2: (-0.320526, 2.898726, 4.247457),
            3: (-0.279219, 2.784235, 4.111268),
        },
    },
    "scaffold(mean_n=2.0, code='feddyn') + uniform": {  # ML 5.3: c / weight_i, dc weight_i
        "oracle": "scaffold",
        "options": {"code": True},
        "sizes": [3.0, 1.0],
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.001972, 2.317817, 3.629572),
            3: (0.085243, 2.377625, 3.859960),
        },
    },
    "dyn(mean_n=2.0) + scaffold(mean_n=2.0)": {  # ML 5.15: a / weight_i, g / weight_i
        "oracle": "feddc",
        "options": {"code": True},
        "sizes": [3.0, 1.0],
        "rows": {
            1: (-0.242503, 2.287910, 3.375816),
            2: (0.030084, 3.739904, 5.824251),
            3: (0.304186, 3.585977, 6.024235),
        },
    },
}


@pytest.mark.parametrize("text", FROZEN)
def test_oracles_have_not_moved(text):
    row = FROZEN[text]
    rows(run(row["oracle"], sizes=row.get("sizes"), **row["options"]), row["rows"])


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", FROZEN)
def test_the_library_equals_them(text, engine):
    problem = {"rounds": 3, "steps": 5, "lr": golden.LR, "engine": engine, "sizes": FROZEN[text].get("sizes")}
    path, plain = (trajectory(method, *P8, **problem) for method in (text, "fedavg"))
    rows(path.numpy(), FROZEN[text]["rows"])
    assert (path[1:] - plain[1:]).abs().max() > 1e-3


HARD: dict[str, tuple] = {  # text: (oracle, its options, what replaces entries of PROBLEM, what is given, rows)
    "speed": (
        "speed",
        {},
        {},
        {},
        {
            1: (0.487722, 0.099609, 2.593011),
            2: (-0.629081, 0.225724, 2.343092),
            3: (-0.048993, 0.121274, 2.907696),
        },
    ),
    "fedspeed": (
        "fedspeed",
        {},
        {},
        {},
        {
            1: (0.511637, 0.115720, 2.628840),
            2: (0.078725, 0.146268, 2.361300),
            3: (0.018584, 0.082368, 2.426231),
        },
    ),
    "fedeve_code": (
        "eve",
        {"q_mode": "energy", "r_mean": "uniform", "count_empty": True},
        EMPTY,
        {},
        {
            1: (0.428603, 0.144358, 2.986947),
            2: (0.317041, 0.153453, 2.755818),
            3: (-0.104345, 0.057601, 1.940557),
        },
    ),
    "pcgrad(form='code')": (
        "pcgrad",
        {"form": "code"},
        WIDE,
        {},
        {
            1: (-0.430697, -0.203039, 4.710994),
            2: (-0.286961, 0.038821, 1.265263),
            3: (-1.582712, -0.105788, 3.044615),
        },
    ),
    "law(form='quad')": (
        "law",
        {"form": "quad"},
        {},
        PROXY,
        {
            1: (0.468374, 0.088189, 2.651145),
            2: (0.156521, 0.157413, 2.893016),
            3: (0.339860, 0.178732, 3.228268),
        },
    ),
}


@pytest.mark.parametrize("engine", ["oracle", "loop", "batched"])
@pytest.mark.parametrize("text", HARD)
def test_the_hard_problem(text, engine):
    """Absent clients, unequal sizes, three of them: what tells these forms from their methods."""
    oracle, options, problem, given, printed = HARD[text]
    problem, case = {**PROBLEM, **problem, "rounds": 3}, (CURVES, CENTRES, BEGIN)
    if engine == "oracle":
        path = load(oracle).trajectory(*case, **problem, **options, **given)
    else:
        path = trajectory(text, *map(torch.as_tensor, case), **problem, **given, engine=engine).numpy()
    rows(path, printed)


@pytest.mark.parametrize(
    "text, mean", [("gh", (0.5 / 3, 2.5 / 3)), ("gh(test_on='original')", (0.576923 / 3, (2 + 0.115385) / 3))]
)
def test_gh_asks_of_the_running_or_of_the_original_pair(text, mean):
    """MS 7, by hand: u_1 conflicts with both others; projected off u_3 it is (.5, .5), which no longer meets u_2's.

    'original' projects it off u_2 all the same, to (.5769, .1154). The other two end at (0, 1) in every order.
    """
    problem, options = exact([1.0, 0.0], [-0.2, 1.0], [-1.0, 1.0]), {"rounds": 1, "steps": 1, "lr": 1.0}
    assert drawn("gh")(0, 0, [1, 2]) == [2, 1]  # the order that tells them apart
    got = trajectory(text, *map(torch.as_tensor, problem), **options)
    np.testing.assert_allclose(got[0].numpy(), mean, atol=1e-6)
