"""What codecs send, counted by hand, and what they promise: no bias, no loss beside feedback, nothing private."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from rig import F64
from torch import Tensor
from torch.func import vmap

import holdfast
from holdfast.check import sheet
from holdfast.data.sets import Dataset
from holdfast.errors import Refused
from holdfast.execute import tensors
from holdfast.execute.loop import Loop
from holdfast.laboratory import EVERYBODY, Lab, batched
from holdfast.models.zoo import build
from holdfast.round import Up
from holdfast.slots import Codec, Step
from holdfast.task import Batch, Task
from holdfast.testing import quadratic
from holdfast.text import parse
from holdfast.vector import Layout, leaves

NET = Task.of(build("mlp", {"hidden": 20, "layers": 1}, (1, 5, 5), 4, 0))
D, HEAD = 25 * 20 + 20 + 20 * 4 + 4, 20 * 4 + 4  # in four tensors, the head two of them
SAMPLE = Batch(torch.zeros(3, 1, 5, 5), torch.zeros(3, dtype=torch.int64), torch.ones(3, dtype=torch.bool))

BYTES = {
    "topk": 7 * (4 + 2),  # ceil(6.04) values in float32 and places in int16
    "topk(k=0.25, feedback=False)": 151 * 6,
    "topk(k=1.0)": D * 6,
    "quantize": D + 4 * 4,  # a byte an entry, a scale a tensor
    "quantize(bits=4)": 302 + 4 * 4,
    "quantize(bits=2, per='vector')": 151 + 4,
    "quantize(bits=1, kind='nearest')": 76 + 4 * 4,  # 604 bits are 75.5 bytes
    "scaffold + topk": 7 * 6 + 4 * D,  # extras travel as they are
    "dyn + topk": 7 * 6,
    "nova + quantize": D + 4 * 4 + 4,  # nova sends one number
    "per + topk": 6 * (4 + 2),  # 1 % of the 520 entries that are shared, rounded up
    "per + quantize(bits=4)": 260 + 2 * 4,
    "freeze + quantize(bits=1)": 65 + 2 * 4,
    "ldp + topk": 7 * 6, "ldp": 4 * D, "dp": 4 * D,
}  # fmt: skip


@pytest.mark.parametrize("text", BYTES)
def test_bytes_up_by_hand(text):
    got = sheet(parse(text), NET, SAMPLE)
    assert D == 604 and got.up == BYTES[text]
    bare = sheet(parse("per" if "per" in text.split() else "freeze" if "freeze" in text else "fedavg"), NET, SAMPLE)
    assert got.model == bare.model and (got.down == bare.down or "scaffold" in text)


def test_records_are_opened_one_by_one():
    """They do not add up, so there is no secure sum of them."""
    assert all(sheet(parse(text), NET, SAMPLE).individual for text in ("topk", "quantize"))
    assert not any(sheet(parse(text), NET, SAMPLE).individual for text in ("dp", "ldp", "fedavg"))


def test_residuals_are_memory():
    assert sheet(parse("topk"), NET, SAMPLE).memory == 4 * D
    assert sheet(parse("topk(feedback=False)"), NET, SAMPLE).memory == 0
    assert sheet(parse("quantize"), NET, SAMPLE).memory == 0


def test_buffers_travel_as_they_are():
    net = torch.nn.Sequential(torch.nn.Linear(25, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 4))
    task = Task.of(torch.nn.Sequential(torch.nn.Flatten(), net))
    shared = 25 * 6 + 6 + 6 + 6 + 6 * 4 + 4
    assert sheet(parse("quantize"), task, SAMPLE).up == shared + 6 * 4 + (4 * 6 * 2 + 8)


def test_places_of_a_large_model_take_four_bytes():
    task = Task.of(build("mlp", {"hidden": 2000, "layers": 1}, (1, 5, 5), 4, 0))
    size = 25 * 2000 + 2000 + 2000 * 4 + 4
    assert sheet(parse("topk"), task, SAMPLE).up == math.ceil(size / 100) * 8


# Beside scaffold, whose extras are whole vectors: they are billed without their padding.
@pytest.mark.parametrize(
    "text", ["topk(k=0.1)", "quantize", "quantize(bits=2)", "scaffold + topk", "per + topk(k=0.1)"]
)
@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_the_sheet_bills_what_finish_returns(text, engine):
    """The sheet comes from a run on meta tensors; this one is real."""
    method, lab = parse(text), Lab("group", torch.float32)
    task, first = lab.task(method), lab.first(method)
    options = tensors(method)
    cohort, down = lab.cohort(first.memory, 0, EVERYBODY), lab.down(method.bound(options), first.server)
    make = batched(2) if engine == "batched" else Loop
    ups, _ = make(method, task)(options, down, cohort, lab.feed)
    assert isinstance(ups.delta, dict)
    sent = sum(t[0].numel() * t.element_size() for t in leaves(ups.delta))
    extras = sum(task.layout.shared_size * 4 for _ in leaves(ups.parts))
    batch = lab.feed(cohort.index[0, 0], cohort.live[0, 0])
    assert sheet(method, lab.task(parse("fedavg")), batch).up == sent + extras


# --- what is done to numbers


def step_of(size: int, key: int = 0, e: Tensor | None = None, layout: Layout | None = None) -> Step:
    layout = layout or Layout.of({"w": torch.zeros(size)})
    zero = torch.zeros(layout.length, dtype=F64)
    task = Task.of(quadratic, layout=layout, dtype=F64).having(start=zero)
    mem = {"e": zero if e is None else e}
    one = torch.ones((), dtype=F64)
    return Step(task, zero, zero, zero, one, one, torch.tensor(0), torch.tensor(key), {}, {}, {}, mem=mem)


def codec(text: str) -> Any:
    return parse(text).slot(Codec)[0]


def there_and_back(text: str, u: Tensor, key: int = 0, layout: Layout | None = None) -> Tensor:
    s, part = step_of(len(u), key, layout=layout), codec(text)
    padded = s.layout.arrived(u) if len(u) < s.layout.length else u
    return part.decode(part.encode(padded, s)[0], s.layout)[: len(u)]


@pytest.mark.parametrize("bits, levels", [(1, 2), (2, 3), (4, 15), (8, 255)])
@pytest.mark.parametrize("kind", ["stochastic", "nearest"])
def test_levels_come_back(bits, levels, kind):
    """A number that is a level stays; every level does, in any place of a byte, and odd lengths too."""
    u = 3 * torch.linspace(-1, 1, levels, dtype=F64)
    u = torch.cat([u, u.flip(0), u[:1], -u.roll(1)])
    back = there_and_back(f"quantize(bits={bits}, kind='{kind}')", u)
    torch.testing.assert_close(back, u, atol=1e-6, rtol=0)  # the draw is a float32 number, so 1 - 2^-25 is 1
    assert len(back.unique()) == levels


@pytest.mark.parametrize("bits, n", [(1, 1), (2, 2), (4, 14), (8, 254)])
def test_nearest_is_nearest(bits, n):
    u = torch.randn(1000, dtype=F64, generator=torch.Generator().manual_seed(1))
    back, largest = there_and_back(f"quantize(bits={bits}, kind='nearest')", u), u.abs().max()
    assert (back - u).abs().max() <= largest / n * (1 + 1e-12)
    if bits > 1:
        zero = torch.cat([u, torch.zeros(3, dtype=F64)])
        assert not there_and_back(f"quantize(bits={bits}, kind='nearest')", zero)[-3:].any()


@pytest.mark.parametrize("bits, n", [(1, 1), (2, 2), (4, 14), (8, 254)])
def test_stochastic_rounding_has_no_bias(bits, n):
    """Over 20,000 keys: the variance of a number is p (1 - p) (2 M/n)^2, so its mean lies within five of its errors."""
    u = torch.tensor([1.0, -0.33, 0.07, 0.5012, -0.9, 0.0], dtype=F64)
    part, many = codec(f"quantize(bits={bits})"), 20_000
    s = step_of(len(u))
    padded = s.layout.arrived(u)
    keys = torch.arange(many) * 7919 + 13
    found = vmap(lambda key: part.decode(part.encode(padded, replace(s, source=key))[0], s.layout)[:6])(keys)
    p = ((u + 1) * n / 2).frac()
    error = (p * (1 - p)).sqrt() * (2 / n) / math.sqrt(many)
    assert ((found.mean(0) - u).abs() <= 5 * error + 1e-6).all()
    torch.testing.assert_close(found.var(0), p * (1 - p) * (2 / n) ** 2, atol=4 / n**2 * 0.02, rtol=0)
    nearest = there_and_back(f"quantize(bits={bits}, kind='nearest')", u)
    assert (nearest - u).abs().max() > 5 * error.max(), "rounding to the nearest would fail this test"


@pytest.mark.parametrize("text", ["quantize", "quantize(bits=1)", "topk(feedback=False)", "quantize(per='vector')"])
def test_zero_stays_zero(text):
    assert not there_and_back(text, torch.zeros(10, dtype=F64)).any()


def test_scales_of_tensors():
    """A small tensor beside a large one keeps its digits only with a scale of its own."""
    layout = Layout.of({"a": torch.zeros(3), "b": torch.zeros(2, 2)})
    u = torch.tensor([100.0, -50, 3, 0.01, -0.02, 0.005, 0.0], dtype=F64)
    own, shared = (there_and_back(f"quantize(kind='nearest', per='{per}')", u, layout=layout)
                   for per in ("tensor", "vector"))  # fmt: skip
    assert (own[3:] - u[3:]).abs().max() <= 0.02 / 254 * 1.001 and not shared[3:].any()


def test_topk_keeps_the_largest_and_remembers_the_rest():
    u = torch.tensor([0.1, -5.0, 2.0, 0.0, -0.3, 4.0], dtype=F64)
    s = step_of(6)
    s = replace(s, mem={"e": s.layout.arrived(torch.tensor([0.0, 0, 0, 0, -9.0, 0], dtype=F64))})
    sent, memory = codec("topk(k=0.34)").encode(s.layout.arrived(u), s)  # ceil(2.04)
    assert sent["places"].tolist() == [1, 4, 5] and sent["values"].tolist() == [-5.0, -9.3, 4.0]
    assert memory["e"][:6].tolist() == [0.1, 0.0, 2.0, 0.0, 0.0, 0.0]
    assert sent["places"].dtype == torch.int16


def test_a_share_is_counted_as_it_is_written():
    """0.07 * 100 is 7.000000000000001 in floating point; seven coordinates are meant."""
    sent, _ = codec("topk(k=0.07)").encode(torch.ones(128, dtype=F64), step_of(100))
    assert len(sent["values"]) == 7


def test_feedback_loses_nothing():
    """What arrived and what waits is the sum of all updates."""
    part, s = codec("topk(k=0.05)"), step_of(64)
    draw, arrived, total = torch.Generator().manual_seed(3), 0, 0
    for _ in range(20):
        u = torch.randn(64, dtype=F64, generator=draw)
        sent, memory = part.encode(u, s)
        arrived, total, s = arrived + part.decode(sent, s.layout), total + u, replace(s, mem=memory)
    torch.testing.assert_close(arrived + s.mem["e"], total)
    assert s.mem["e"].norm() > 1


def test_k_is_a_constant():
    """Shapes depend on it, so it is no tensor; the other parts' numbers are."""
    assert set(tensors(parse("topk + prox"))) == {"topk", "prox"} and not tensors(parse("topk + prox"))["topk"]


@pytest.mark.parametrize("text", ["topk(k=0.1)", "quantize(bits=4)", "quantize(kind='nearest')"])
def test_codecs_trace(text):
    """There and back in one graph over lanes: no value decides a shape."""
    part, s = codec(text), step_of(100)
    u, keys = torch.randn(3, 128, dtype=F64, generator=torch.Generator().manual_seed(2)), torch.arange(3)

    def lane(u: Tensor, key: Tensor) -> Tensor:
        return part.decode(part.encode(u, replace(s, source=key))[0], s.layout)

    wanted = vmap(lane)(u, keys)
    torch.testing.assert_close(torch.compile(vmap(lane), backend="eager", fullgraph=True)(u, keys), wanted)
    torch.testing.assert_close(torch.stack([lane(*row) for row in zip(u, keys, strict=True)]), wanted)


# --- whole runs


@pytest.mark.parametrize("text", ["scaffold + topk(k=0.2)", "dyn + topk(k=0.2)", "quantize(bits=4)", "ldp(noise=0.01)"])
def test_runs_in_both_engines(text):
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(60, 1, 4, 4)).astype(np.float32), draw.integers(3, size=60)
    data = Dataset.of(x, y, x, y, classes=3)
    common: dict[str, Any] = {"data": data, "split": "iid(clients=6)", "model": "mlp(hidden=4, layers=1)", "rounds": 3,
                              "cohort": 3, "batch": 4, "dtype": "float64", "threads": 1, "epochs": 2}  # fmt: skip
    one, other = (holdfast.run(method=text, engine=e, **common) for e in ("loop", "batched"))
    torch.testing.assert_close(one.server.w, other.server.w, atol=1e-9, rtol=1e-9)
    size = 16 * 4 + 4 + 4 * 3 + 3
    each = {"scaffold": 17 * (8 + 2) + 8 * size, "dyn": 17 * 10, "quantize(bits=4)": 42 + 4 * 8}.get(
        text.split()[0], 8 * size
    )
    assert [row["bytes_up"] for row in one.metrics] == [3 * each] * 3


def test_a_second_codec_is_refused():
    with pytest.raises(Refused, match="both fill 'codec'"):
        parse("topk + quantize")


def test_ups_of_a_silent_client_decode_to_nothing():
    """A client without samples sends zeros, which mean an update of zero."""
    for text in ("topk(k=0.2)", "quantize(bits=1)", "quantize"):
        ups = Lab("group").round(parse(text), Lab("group").first(parse(text)), 0, ids=(0, 3)).ups
        assert isinstance(ups, Up) and ups.delta[0].any() and not ups.delta[1].any()
