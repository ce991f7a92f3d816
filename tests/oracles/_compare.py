"""A harder problem than P8, and the comparison of a part with its oracle on it."""

from dataclasses import replace

import golden
import numpy as np
import torch
from _run import load

from holdfast import noise
from holdfast.data.plan import root
from holdfast.execute import tensors
from holdfast.slots import Perturb, Step, Transform
from holdfast.task import Task
from holdfast.testing import quadratic, trajectory
from holdfast.text import parse
from holdfast.vector import Layout

P8 = tuple(torch.tensor(x, dtype=torch.float64) for x in (golden.A, golden.B, golden.W0))

# Six clients of unequal sizes and step counts, some absent, some alone, one seen only late.
CLIENTS, SIZE, ROUNDS = 6, 8, 6
DRAW = np.random.default_rng(7)
CURVES, CENTRES = DRAW.uniform(0.5, 2.0, (CLIENTS, SIZE)), 2 * DRAW.normal(size=(CLIENTS, SIZE))
BEGIN = DRAW.normal(size=SIZE)
SIZES, STEPS = [3.0, 1.0, 5.0, 2.0, 4.0, 1.0], [3, 5, 1, 4, 2, 6]
COHORTS = [[0, 1, 2], [2], [1, 3], [0, 2, 4, 5], [5, 1]]
RATES = [0.07, 0.06, 0.055, 0.04, 0.03, 0.02]  # so that a division by another round's is seen
PROBLEM = {"rounds": ROUNDS, "steps": STEPS, "lr": RATES, "sizes": SIZES, "cohort": COHORTS}


def compare(text, oracle, options, engine, shape=None, given=None, plain="fedavg", curves=CURVES, **problem):
    """`given`: what both sides receive beside the problem; `problem` replaces entries of PROBLEM."""
    problem, given = {**PROBLEM, **problem}, given or {}
    expected = load(oracle).trajectory(curves, CENTRES, BEGIN, **problem, **options, **given)
    got = trajectory(
        text, *map(torch.as_tensor, (curves, CENTRES, BEGIN)), **problem, engine=engine, shape=shape, **given
    )
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-11, atol=1e-11)
    if plain and oracle != plain:  # the case tells the method from FedAvg, or from another one
        other = load(plain).trajectory(curves, CENTRES, BEGIN, **problem)
        assert np.abs(expected - other).max() > 1e-6


def drawn(part):
    """Visiting orders are the library's own random draw; what is done in that order is the oracle's."""

    def order(t, k, others):
        key = noise.fold(noise.fold(root(0), torch.tensor(t)), noise.tag(part))
        return sorted(others, key=lambda j: int(noise.fold(key, torch.tensor(k), torch.tensor(j))))

    return order


def applied(text, arrays, names=None, key: int | torch.Tensor = 0, step=0, private=()):
    """What the one filter in `text` makes of a list of tensors: a gradient, or a perturbation if it is a Perturb.

    The vector is padded, as a model's is; the padding must stay zero.
    """
    names = tuple(names or (f"t{i}.weight" for i in range(len(arrays))))
    record = dict(zip(names, map(torch.as_tensor, arrays), strict=True))
    layout = Layout.of(record).keeping(private)
    zero = torch.zeros(layout.length, dtype=torch.float64)
    task = Task.of(quadratic, layout=layout, dtype=torch.float64).having(start=zero)
    method = parse(text)
    method = method.bound(tensors(method))
    number = torch.tensor(float(step), dtype=torch.float64)
    s = Step(task, zero, zero, zero, zero.sum(), number, torch.tensor(0), torch.as_tensor(key), {}, {}, {})
    v = layout.join(record)
    for slot, hook in ((Transform, "transform"), (Perturb, "perturb")):
        for part in method.slot(slot):
            v = getattr(part, hook)(v, replace(s, tag=part.tag))
    assert not v[layout.size :].any()
    return [t.numpy() for t in layout.split(v).values()]
