"""The filters and their controls tensor by tensor: numbers of the specs, then the parts on a list of many shapes."""

import _controls
import _spectral
import numpy as np
import pytest
import torch
from _compare import CLIENTS, COHORTS, ROUNDS, SIZE, applied, compare

from holdfast import noise, spectrum
from holdfast.data.plan import keys
from holdfast.models.zoo import build
from holdfast.task import Task

RNG = np.random.default_rng(11)
SHAPES = {  # a small network: stem, block with a norm, 1x1 shortcut, a kernel of even sides, classifier
    "stem.conv.weight": (4, 3, 3, 3), "stem.norm.weight": (4,), "block.conv.weight": (6, 4, 3, 3),
    "block.norm.bias": (6,), "down.conv.weight": (6, 4, 1, 1), "wide.conv.weight": (2, 3, 4, 5),
    "fc.weight": (5, 24), "fc.bias": (5,), "scale": (1,),
}  # fmt: skip
NAMES = list(SHAPES)
TENSORS = [RNG.normal(size=shape) + 0.5 for shape in SHAPES.values()]
TENSORS[2][:, :, [0, 2]] = 0  # dead taps: the two outer rows of the block's kernels


def test_vectors():
    """ML 8.5.6."""
    expected = (-2.5, -0.085786, 0.914214, 0.5, -0.5, -0.914214, 0.085786, 2.5)
    one, odd = np.arange(1.0, 9), np.array([1.0, 2, 4, 8, 16])
    np.testing.assert_allclose(_spectral.specgrad([one], r=0.25)[0], one - 4.5, atol=1e-12)
    np.testing.assert_allclose(_spectral.specgrad([one], r=0.45)[0], expected, atol=0.6e-6)
    np.testing.assert_allclose(_spectral.specgrad([odd], r=0.4)[0], (-5.2, -4.2, -2.2, 1.8, 9.8), atol=1e-12)


def test_counts():
    """ML 7.2: how many bins go, some of the table; ML 7.4: widths and sigmas at half power."""
    table = {10: (0, 0), 64: (0, 1), 256: (1, 6), 432: (2, 10), 640: (3, 16), 2304: (11, 57), 2359296: (11796, 58982)}
    for d, printed in table.items():
        assert tuple(len(_spectral.removed_bins(d, r)) for r in (0.01, 0.05)) == printed
    assert [len(_spectral.box(r)) for r in (0.01, 0.05)] == [151, 31]
    # sigma out of the kernel: the ratio of the first two weights is exp(-1 / (2 sigma^2))
    for r, sigma in ((0.01, 49.9), (0.05, 10.0)):
        middle = _spectral.bell(r)[len(_spectral.bell(r)) // 2 :]
        assert abs((2 * np.log(middle[0] / middle[1])) ** -0.5 - sigma) < 0.15


def test_half_power():
    """ML 7.4: at r/2 cycles an entry both spatial filters keep half the power, up to the rounding of the width."""
    d, r = 1200, 0.05
    wave = np.cos(2 * np.pi * 0.025 * np.arange(d))
    for kind, tolerance in (("lap", 0.04), ("gauss", 0.01)):  # 31 for 30.2
        left = _spectral.specgrad([wave], r=r, kind=kind)[0]
        assert abs((left @ left) / (wave @ wave) - 0.5) < tolerance
        np.testing.assert_allclose(_spectral.specgrad([np.ones(d)], r=r, kind=kind)[0], 0, atol=1e-12)


def test_dead_taps():
    """ML 1.2, 8.5.7: on a comb of period 9 exactly 8/9 of each removed bin stays at the live tap."""
    v = np.zeros((8, 6, 3, 3))
    v[:, :, 1, 1] = RNG.normal(size=(8, 6))
    before = np.fft.rfft(v[:, :, 1, 1].reshape(-1))
    after = np.fft.rfft(_spectral.specgrad([v], r=0.05)[0][:, :, 1, 1].reshape(-1))
    k = len(_spectral.removed_bins(v.size, 0.05))
    np.testing.assert_allclose(after[:k] / before[:k], 8 / 9, rtol=1e-10)
    np.testing.assert_allclose(after[k:24] / before[k:24], 1, rtol=1e-10)
    live = _controls.gc([v], "live")[0]
    assert not live[:, :, 0].any() and np.abs(live.sum(axis=(1, 2, 3))).max() < 1e-12
    assert np.abs(_controls.gc([v])[0][:, :, 0, 0]).max() > 1e-3  # plain centring leaks into taps that see nothing


def test_two_dimensions():
    """AD A3: by default fft2 is the mean of each 3x3 kernel; the literal k is 0 for r < 1/6; whole shells go."""
    v = RNG.normal(size=(4, 3, 3, 3))
    centred = _controls.gc([v], "kernel")[0]
    np.testing.assert_allclose(_spectral.specgrad([v], kind="fft2")[0], centred, atol=1e-14)
    np.testing.assert_allclose(_spectral.specgrad([v], kind="fft2", min_bins=0, r=0.16)[0], v, atol=1e-14)
    np.testing.assert_allclose(_spectral.specgrad([v], kind="fft2", min_bins=0, r=0.17)[0], centred, atol=1e-14)
    # Six bins: radius 0; three of 1/3, (0, 1), (1, 0), (-1, 0); two of sqrt 2 / 3. k = 2, 3, 4 reach the same shell.
    kept = [_spectral.specgrad([v], kind="fft2", r=r)[0] for r in (2 / 6, 3 / 6, 4 / 6)]
    np.testing.assert_array_equal(kept[0], kept[1])
    np.testing.assert_array_equal(kept[0], kept[2])
    spectrum = np.fft.fft2(kept[0])
    assert np.abs(spectrum[..., [0, 0, 1, 0, 2], [0, 1, 0, 2, 0]]).max() < 1e-12
    assert np.abs(spectrum[..., 1, 1]).min() > 1e-6


PADS = ("reflect", "replicate", "zero")
ORACLES = {
    "specgrad": _spectral.specgrad, "specpert": _spectral.specgrad, "gc": _controls.gc, "gcpert": _controls.gc,
    "l2": _controls.l2, "l2pert": _controls.l2pert, "coordclip": _controls.coordclip,
}  # fmt: skip
CASES = {
    "specgrad": [
        {"r": 0.2}, {"r": 0.2, "band": "high"}, {"r": 0.2, "match": "tensor"}, {"r": 0.2, "match": "model"},
        {"r": 0.2, "min_bins": 1}, {"r": 0.2, "kind": "lap"}, {"r": 0.2, "kind": "gauss"},
        {"r": 0.2, "kind": "lap", "width": 9.0, "match": "model"}, {"r": 0.2, "kind": "gauss", "width": 2.2},
        {"r": 0.2, "order": "2301"}, {"r": 0.2, "order": "3120", "band": "high"},
        {"r": 0.2, "order": "1230", "kind": "lap"}, {"r": 0.2, "kind": "fft2"}, {"r": 0.4, "kind": "fft2"},
        {"r": 0.4, "kind": "fft2", "on_1x1": "zero", "match": "tensor"},
        {"r": 0.4, "kind": "fft2", "on_1x1": "hp1d"}, {"r": 0.1, "kind": "fft2", "min_bins": 0},
        *({"r": 0.2, "kind": kind, "pad": pad} for kind in ("lap", "gauss") for pad in PADS),
        {"kind": "lap", "width": 31.0, "short": "shrink"},
        {"kind": "lap", "width": 9.0, "short": "shrink", "pad": "zero"},
        {"kind": "gauss", "width": 9.0, "short": "shrink", "pad": "reflect"}, {"r": 0.2, "kind": "block"},
        {"kind": "block", "width": 4.0}, {"kind": "block", "width": 30.0, "short": "shrink", "match": "tensor"},
        {"kind": "block", "r": 0.3, "order": "1230"},
        {"r": 0.2, "scope": "matrix"}, {"r": 0.2, "scope": "conv", "match": "model"},
        {"r": 0.2, "scope": "linear"}, {"r": 0.2, "scope": "stem,fc"}, {"r": 0.2, "scope": "norm"},
    ],
    "specpert": [
        {"r": 0.2}, {"r": 0.2, "band": "high", "match": "tensor"}, {"r": 0.2, "match": "model"},
        {"r": 0.1, "min_bins": 1}, {"r": 0.2, "scope": "matrix"}, {"r": 0.2, "scope": "stem,fc", "match": "model"},
    ],
    "gc": [{}, {"per": "kernel"}, {"per": "tensor"}, {"per": "live"}, {"per": "live", "match": "tensor"},
           {"per": "kernel", "match": "model"}],
    "gcpert": [{}, {"per": "live"}, {"per": "tensor", "match": "model"}],
    "l2": [{"r": 0.2}, {"form": "unit"}, {"form": "cap", "max": 2.0}, {"form": "cap", "max": 1e3}],
    "l2pert": [{"r": 0.2}, {"form": "cap", "max": 2.0}, {"form": "cap", "max": 1e3}],
    "coordclip": [{"c": 0.9}, {"c": 1.2, "per": "model"}, {}],
}  # fmt: skip


def written(name, options):
    text = f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})"
    return f"sam + {text}" if name in ("specpert", "gcpert", "l2pert", "coordclip") else text


@pytest.mark.parametrize("name, options", [(name, case) for name, cases in CASES.items() for case in cases])
def test_part_on_many_tensors(name, options):
    more = {"names": NAMES} if "scope" in options else {}
    expected = ORACLES[name](TENSORS, **options, **more)
    for got, wanted, shape in zip(applied(written(name, options), TENSORS, NAMES), expected, SHAPES, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-11, err_msg=shape)


@pytest.mark.parametrize("name", ["specgrad(r=0.2)", "gc", "l2", "l2(form='unit')", "sam + l2pert", "sam + coordclip"])
def test_zeros_stay_zeros(name):
    """No norm, median or mean of a zero tensor may give NaN."""
    for got in applied(name, [np.zeros_like(v) for v in TENSORS], NAMES):
        assert not got.any()


@pytest.mark.parametrize(
    "name, options",
    [
        ("specpert", {"r": 0.2}), ("specpert", {"r": 0.2, "match": "model"}), ("gcpert", {}), ("l2pert", {"r": 0.2}),
        ("gcpert", {"per": "tensor", "match": "model"}), ("l2pert", {"form": "cap", "max": 2.0}),
        ("coordclip", {"c": 0.9}), ("coordclip", {"c": 1.2, "per": "model"}),
    ],
)  # fmt: skip
def test_private_tensors_are_not_filtered(name, options):
    """MS 11.2: FedFFT beside FedPer works within the shared representation, and so do its controls."""
    got = applied(written(name, options), TENSORS, NAMES, private=("fc.weight", "fc.bias"))
    shared = [v for name, v in zip(NAMES, TENSORS, strict=True) if not name.startswith("fc")]
    after = dict(zip((n for n in NAMES if not n.startswith("fc")), ORACLES[name](shared, **options), strict=True))
    for name, v, before in zip(NAMES, got, TENSORS, strict=True):
        np.testing.assert_allclose(v, after.get(name, before), atol=1e-12)


@pytest.mark.parametrize("filter", ["specgrad", "sam + specpert"])
def test_random_bins_differ_from_tensor_to_tensor(filter):
    """One draw for all would take the same bins out of tensors of one size."""
    for band in ("random", "fresh"):
        impulses = [np.eye(40)[0]] * 6
        left = [np.fft.rfft(v) for v in applied(f"{filter}(r=0.3, band='{band}')", impulses)]
        gone = {tuple(np.flatnonzero(np.abs(v) < 1e-9)) for v in left}
        assert len(gone) == 6 and {len(bins) for bins in gone} == {6}  # floor(.3 * 21)


def positions(low, d):
    """Where each entry stands on a circle, up to rotation and reflection, from the projection onto bins 0 and 1."""
    apart = np.rint(np.arccos(np.clip((d * low - 1) / 2, -1, 1)) * d / (2 * np.pi)).astype(int)
    place = apart[0].copy()
    beside = int(np.flatnonzero(apart[0] == 1)[0])
    for i in range(d):
        if (abs(place[i] - 1) % d) != apart[beside][i]:
            place[i] = d - place[i]
    return place % d


def test_the_filter_on_the_transformer_of_the_zoo():
    """ML 7.3: only the patch embedding of the ViT that FedFFT runs, its weight with k = floor(.05 L); not its bias."""
    layout = Task.of(build("vit", {"patch": 4, "size": 32}, (3, 32, 32), 10, 0)).layout
    arrays = [RNG.normal(size=shape) for shape in layout.shapes]
    patches = [name for name in layout.names if "patch" in name]
    assert sorted(name.rpartition(".")[2] for name in patches) == ["bias", "weight"]
    expected = _spectral.specgrad(arrays, r=0.05, scope="patch", names=layout.names)
    got = applied("specgrad(scope='patch')", arrays, layout.names)
    for name, before, after, wanted in zip(layout.names, arrays, got, expected, strict=True):
        np.testing.assert_allclose(after, wanted, atol=1e-11)
        assert np.array_equal(before, after) == (name not in patches)


@pytest.mark.parametrize("draw", [0, 5])
def test_random_order(draw):
    """One fixed permutation of all entries of a convolution, the same at every step; the rest keeps its order (A16)."""
    d, shape, text = 16, (2, 2, 2, 2), f"specgrad(r=0.25, order='random', draw={draw})"  # 9 bins: k = 2
    names = ["conv.weight", "fc.weight"]
    columns = [applied(text, [unit.reshape(shape), unit.reshape(4, 4)], names) for unit in np.eye(d)]
    matrix = np.array([c[0].reshape(-1) for c in columns]).T
    place = positions(np.eye(d) - matrix, d)
    assert sorted(place) == list(range(d)) and list(place) != list(range(d))
    v = RNG.normal(size=d)
    got = applied(text, [v.reshape(shape), v.reshape(4, 4)], names, key=9, step=4)
    expected = _spectral.specgrad([v.reshape(shape)], r=0.25, order="random", shuffled=[np.argsort(place)])[0]
    np.testing.assert_allclose(got[0], expected, atol=1e-12)
    np.testing.assert_allclose(got[1], _spectral.specgrad([v.reshape(4, 4)], r=0.25)[0], atol=1e-12)


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_an_order_for_each_client(engine):
    """AD A16: or each client its own, fixed over rounds. Whose comes first is drawn; what it does is the oracle's."""
    shape = (2, 1, 2, 2)
    first = {k: next(t for t in range(ROUNDS) if k in COHORTS[t % len(COHORTS)]) for k in range(CLIENTS)}

    def shuffled(t, k, i):
        key = noise.fold(keys(0, first[k], torch.tensor(k)), noise.tag("specgrad"), 0) & 0xFFFFFF
        return spectrum.shuffled(noise.fold(key, 0), SIZE).numpy()

    orders = {tuple(shuffled(0, k, 0)) for k in range(CLIENTS)}
    assert len(orders) == CLIENTS
    options = {"r": 0.45, "order": "random", "shape": shape, "shuffled": shuffled}
    compare("specgrad(r=0.45, order='random_client')", "filtered", options, engine, shape=shape)
