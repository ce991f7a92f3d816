"""FedAlign's own pieces: the singular value, and a stage that is masked instead of cut."""

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.errors import Refused
from holdfast.parts.align import Align, top
from holdfast.task import Batch, Task
from holdfast.text import parse

F64 = torch.float64
DRAW = torch.Generator().manual_seed(5)


def test_top_is_the_released_power_iteration():
    """methods/fedalign.py: v = ones, ten turns of v <- K v/||K v||, K = M M^T, M = x y^T/HW; then sqrt(||K v||)."""
    x, y = (torch.randn(3, c, 4, 4, generator=DRAW, dtype=F64) for c in (5, 7))
    for k in range(3):
        m = x[k].reshape(5, -1).numpy() @ y[k].reshape(7, -1).numpy().T / 16
        v = np.ones((5, 1))
        for _ in range(10):
            n = np.linalg.norm(m @ m.T @ v)
            v = m @ m.T @ v / n
        np.testing.assert_allclose(top(x, y)[k], np.sqrt(n), rtol=1e-12)
        np.testing.assert_allclose(top(x, y, turns=500)[k], np.linalg.norm(m, 2), rtol=1e-9)


def test_a_wider_input_is_pooled():
    x, y = torch.randn(2, 3, 8, 8, generator=DRAW, dtype=F64), torch.randn(2, 6, 4, 4, generator=DRAW, dtype=F64)
    np.testing.assert_allclose(top(x, y), top(nn.functional.avg_pool2d(x, 2), y), rtol=1e-12)


def test_nothing_in_gives_zero_and_no_nan():
    x = torch.zeros(2, 3, 4, 4, dtype=F64, requires_grad=True)
    value = top(x, x)
    value.sum().backward()
    assert x.grad is not None
    assert float(value.detach().abs().max()) < 1e-7 and bool(torch.isfinite(x.grad).all())


def stage(inputs: int, outputs: int) -> nn.Sequential:
    body = nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
    return nn.Sequential(nn.Conv2d(2, inputs, 3, padding=1), body, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(outputs, 3))


def test_a_masked_stage_is_a_cut_one():
    """Channels that are left out are zeros all the way, so with BatchNorm the mask is the sub-network."""
    with torch.random.fork_rng():
        torch.manual_seed(8)
        net, small = stage(8, 12).double(), stage(2, 3).double()
    with torch.no_grad():
        small.get_parameter("1.0.weight").copy_(net.get_parameter("1.0.weight")[:3, :2])
        small.get_parameter("1.0.bias").copy_(net.get_parameter("1.0.bias")[:3])
    object.__setattr__(net, "last_stage", ("1",))
    task = Task.of(net, dtype=F64)
    x = torch.randn(4, 8, 4, 4, generator=DRAW, dtype=F64)
    batch = Batch(x, torch.zeros(4, dtype=torch.int64), torch.ones(4, dtype=torch.bool))
    part = Align(width=0.25)
    thin = task.layout.map(lambda _, t: part.thinned(t, 0), task.start)
    got = task.stage(thin, task.buffers, batch, part.thinned(x, 1))
    want = small[1](x[:, :2])
    torch.testing.assert_close(got[:, :3], want, rtol=1e-12, atol=1e-12)
    assert not got[:, 3:].any()


def test_a_model_without_a_stage_is_refused():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    batch = Batch(torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool))
    from holdfast.check import sheet

    with pytest.raises(Refused, match="last_stage"):
        sheet(parse("align"), Task.of(net), batch)
