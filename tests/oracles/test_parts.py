"""The library's parts against the golden rows of the specs and against the oracles in this folder."""

import math

import golden
import numpy as np
import pytest
from _compare import P8, SIZES, compare, drawn
from _run import HALF, rows

from holdfast.testing import trajectory

ROWS = {**golden.LOCAL, **golden.CLIPPED, **golden.SERVER}


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("name", ROWS)
def test_golden_rows(name, engine):
    row = ROWS[name]
    path = trajectory(row["text"], *P8, rounds=3, steps=row["steps"], lr=golden.LR, sizes=row["sizes"], engine=engine)
    rows(path.numpy(), row["rows"])


@pytest.mark.parametrize("name", golden.CLIPPED_NORMS)
def test_golden_norms(name):
    """methods-local 8.3, last line: of `prox_inside` the norm after round 3 is all that is printed."""
    path = trajectory(ROWS[name]["text"], *P8, rounds=3, steps=5, lr=golden.LR)
    assert abs(float(path[2].norm()) - golden.CLIPPED_NORMS[name]) < HALF


@pytest.mark.parametrize("name", golden.LIMITS)
def test_limits(name):
    """methods-local 8.4, addenda A4 and A5. FedDyn contracts by .96 a round, the others by .6 or so."""
    text, _, _, steps, printed, tolerance = golden.LIMITS[name]
    w = trajectory(text, *P8, rounds=1000 if "dyn" in text else 300, steps=steps, lr=golden.LR)[-1]
    assert abs(np.linalg.norm(w.numpy() - golden.OPTIMUM) - printed) < max(tolerance, 1e-10)


@pytest.mark.parametrize("name", golden.LIMIT_NORMS)
def test_limits_of_the_filter(name):
    text, _, _, printed, tolerance = golden.LIMIT_NORMS[name]
    w = trajectory(text, *P8, rounds=1000 if "dyn" in text else 300, steps=5, lr=golden.LR)[-1]
    assert abs(float(w.norm()) - printed) < tolerance


@pytest.mark.parametrize("name", golden.NO_LIMIT)
def test_methods_that_do_not_settle(name):
    """With a constant radius their last steps keep a length, printed with one or two digits (methods-local 8.4)."""
    text, _, _, printed, tolerance = golden.NO_LIMIT[name]
    path = trajectory(text, *P8, rounds=401, steps=5, lr=golden.LR)
    assert abs(float((path[-1] - path[-2]).norm()) - printed) < 2 * tolerance


@pytest.mark.parametrize("text", ["scaffold + momentum(beta=0.5)"])
def test_corrections_reach_the_optimum(text):
    """The plain ones are among the limits; beside momentum only the effective step count lets SCAFFOLD arrive."""
    w = trajectory(text, *P8, rounds=1000, steps=5, lr=golden.LR)[-1]
    assert np.linalg.norm(w.numpy() - golden.OPTIMUM) < 1e-10


MEAN = sum(SIZES) / len(SIZES)  # what the codes of FedDyn and FedDC call n/N
SAME: dict[str, tuple[str, dict]] = {
    "fedavg": ("fedavg", {}),
    "prox(mu=0.3)": ("prox", {"mu": 0.3}),
    "scaffold": ("scaffold", {}),
    "dyn(alpha=0.2)": ("dyn", {"alpha": 0.2}),
    f"dyn(mean_n={MEAN})": ("dyn", {"code": True}),
    f"dyn(mean_n={MEAN}) + scaffold(mean_n={MEAN})": ("feddc", {"code": True}),
    f"scaffold(mean_n={MEAN}, code='feddyn') + uniform": ("scaffold", {"code": True}),
    "scaffold(scale=0.1)": ("scaffold", {"scale": 0.1}),
    "lesam + scaffold(scale=0.1)": ("fedlesam_s", {"scale": 0.1}),
    "cm(alpha=0.3)": ("cm", {"alpha": 0.3}),
    "sam(rho=0.2)": ("sam", {"rho": 0.2}),
    "asam(rho=0.4, eta=0.05)": ("asam", {"rho": 0.4, "eta": 0.05}),
    "lesam(rho=0.2)": ("lesam", {"rho": 0.2}),
    "lesam(rho=0.2, mode='last_update')": ("lesam", {"rho": 0.2, "mode": "last_update"}),
    "dyn + smoo": ("smoo", {"form": "paper"}),
    "dyn + smoo(form='code')": ("smoo", {"form": "code"}),
    "specgrad(r=0.45)": ("specgrad", {"r": 0.45}),
    "sam + specpert(r=0.45)": ("specpert", {"r": 0.45}),
    "nova": ("nova", {}),
    "init(beta=0.2)": ("init", {"beta": 0.2}),
    "eve": ("eve", {}),
    "eve(q_mode='energy', r_mean='uniform')": ("eve", {"q_mode": "energy", "r_mean": "uniform"}),
    "avgm": ("avgm", {}),
    "avgm(beta=0.5, form='heavy')": ("avgm", {"beta": 0.5, "form": "heavy"}),
    "adam": ("adam", {}),
    "adam(v0='zero', bias_correction=True)": ("adam", {"v0": "zero", "bias_correction": True}),
    "wd(wd=0.05)": ("wd", {"wd": 0.05}),
    "momentum(beta=0.8)": ("momentum", {"beta": 0.8}),
    "local_adam": ("local_adam", {}),
    "local_adam(beta1=0.5, beta2=0.9, eps=0.001) + wd(wd=0.05)": (
        "local_adam", {"beta1": 0.5, "beta2": 0.9, "eps": 1e-3, "wd": 0.05},
    ),
    "uniform": ("uniform", {}),
    "server(lr=0.7)": ("server", {"server_lr": 0.7}),
    "prox(mu=0.3) + clip(max=1.0)": ("clip", {"mu": 0.3, "max": 1.0, "scope": "official"}),
    "prox(mu=0.3) + clip(max=1.0, scope='prox_inside')": ("clip", {"mu": 0.3, "max": 1.0, "scope": "prox_inside"}),
    "prox(mu=0.3) + clip(max=1.0, scope='data_only')": ("clip", {"mu": 0.3, "max": 1.0, "scope": "data_only"}),
    "fedgamma": ("fedgamma", {}),
    "mofedsam": ("mofedsam", {}),
    "fedspeed": ("fedspeed", {}),
    "feddc": ("feddc", {}),
    "fedlesam_s": ("fedlesam_s", {}),
    "fedlesam_d": ("fedlesam_d", {}),
    "fedfft_s(r=0.45)": ("fedfft_s", {"r": 0.45}),
    "fedfft_d(r=0.45)": ("fedfft_d", {"r": 0.45}),
    "nova + momentum": ("nova_momentum", {}),
    "nova + momentum(beta=0.5)": ("nova_momentum", {"beta": 0.5}),
    "scaffold + momentum(beta=0.5)": ("scaffold_momentum", {"beta": 0.5}),
    "prox + specgrad(r=0.45)": ("sgf_prox", {"r": 0.45}),
    "scaffold + specgrad(r=0.45)": ("sgf_scaffold", {"r": 0.45}),
    "dyn + specgrad(r=0.45)": ("sgf_dyn", {"r": 0.45}),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", SAME)
def test_equals_its_oracle(text, engine):
    compare(text, *SAME[text], engine)


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_gc_equals_its_oracle(engine):
    compare("gc", "gc", {"shape": (4, 2)}, engine, shape=(4, 2))


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text, oracle", [("gh", "gh"), ("nova + gh", "nova_gh")])
def test_gh_equals_its_oracle(text, oracle, engine):
    compare(text, oracle, {"order": drawn("gh")}, engine)


@pytest.mark.parametrize("last", [200, pytest.param(20000, marks=pytest.mark.slow)])
def test_eve_settles_slowly(last):
    """addenda A5: G falls like 1.7/t on a stationary problem, so distances to FedAvg's fixed point shrink slowly."""
    fixed = trajectory("fedavg", *P8, rounds=400, steps=5, lr=golden.LR)[-1]
    path = trajectory("eve", *P8, rounds=last, steps=5, lr=golden.LR)
    for rounds, printed in golden.EVE_DISTANCES.items():
        if rounds <= last:
            assert math.isclose(float((path[rounds - 1] - fixed).norm()), printed, rel_tol=0.05), rounds
