"""How the tests of this folder load an oracle and run it, on P8 unless they name another problem."""

import functools
import importlib.util
from pathlib import Path
from typing import Any

import golden
import numpy as np

HALF = 0.5e-6 + 1e-9  # half of the last printed digit


@functools.cache
def load(oracle):
    """An oracle by path: `gc` is also the name of a built-in module."""
    spec = importlib.util.spec_from_file_location(f"oracle_{oracle}", Path(__file__).with_name(f"{oracle}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(oracle, a: Any = golden.A, b: Any = golden.B, w0: Any = golden.W0, **options: Any):
    options = {"rounds": 3, "steps": 5, "lr": golden.LR, **options}
    return load(oracle).trajectory(a, b, w0, **options)


def rows(path, table):
    """The printed rows of a golden table against a path."""
    for t, printed in table.items():
        got = (path[t - 1][0], path[t - 1][7], np.linalg.norm(path[t - 1]))
        np.testing.assert_allclose(got, printed, rtol=0, atol=HALF)


FLAT = 1e-9  # with a = FLAT and b = -g / FLAT the gradient is g, whatever w (to 1e-9)


def flat(*gradients):
    g = np.array(gradients, dtype=float)
    return np.full_like(g, FLAT), -g / FLAT, np.zeros(g.shape[1])


def exact(*updates):
    """With a = 1, w0 = 0, K = 1, lr = 1, the first update of client k is `updates[k]`."""
    u = np.array(updates, dtype=float)
    return np.ones_like(u), u, np.zeros(u.shape[1])
