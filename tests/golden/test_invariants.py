"""Exact invariants and one-liners that catch known bugs: ML 8.5.3 to 8.5.10, 8.6, 5.x, 7; AD A13, B9."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rig import (
    BEGIN,
    CENTRES,
    CURVES,
    F64,
    W0,
    A,
    B,
    close,
    hard,
    linears,
    p8,
    quadratics,
    sum_of,
    throwaway,
    vector,
)

from holdfast.data.plan import Work
from holdfast.method import Part
from holdfast.models.zoo import build
from holdfast.parts.clip import Clip
from holdfast.parts.dyn import Dyn
from holdfast.parts.scaffold import Scaffold
from holdfast.slots import Descend, Perturb
from holdfast.spectrum import highpass
from holdfast.testing import trajectory
from holdfast.text import parse
from holdfast.vector import Layout

COHORTS = [{0: 3, 1: 5, 2: 1}, {1: 5, 3: 4}, {2: 2}, {0: 3, 3: 4}]
FULL = [{0: 3, 1: 5, 2: 1, 3: 4}] * 4


# --- 8.5.3 sums of states


@pytest.mark.parametrize("cohorts", [FULL, COHORTS], ids=["full", "partial"])
@pytest.mark.parametrize(
    "text", ["scaffold", "feddc", "fedgamma", "scaffold + specgrad(r=0.45)", "scaffold + momentum"]
)
def test_variates_add_up(text, cohorts):
    """ML 5.3, 8.5.3: mean_all(c_i) = c every round; with c_0 = 0 and c += 1/N sum_S it also holds under absence."""
    fed = quadratics(text, CURVES, CENTRES, BEGIN, sizes=[3.0, 1.0, 5.0, 2.0])
    for t, cohort in enumerate(cohorts):
        fed.go(cohort, lr=0.1 / (t + 1))
        close(fed.memory["scaffold"]["c"].mean(0), fed.state("scaffold", "c"))


@pytest.mark.parametrize("cohorts", [FULL, COHORTS], ids=["full", "partial"])
@pytest.mark.parametrize("text", ["feddyn", "feddc", "fedspeed", "fedsmoo", "fedlesam_d", "sized + dyn"])
def test_duals_add_up(text, cohorts):
    """ML 5.4, 8.5.3: the server's dual is the mean over all N of h_i."""
    fed = quadratics(text, CURVES, CENTRES, BEGIN, sizes=[3.0, 1.0, 5.0, 2.0])
    for cohort in cohorts:
        fed.go(cohort)
        close(fed.memory["dyn"]["h"].mean(0), fed.state("dyn", "h"))


# --- 8.5.4 and 8.5.5 frozen frequencies


def low(w: torch.Tensor) -> torch.Tensor:
    return w - highpass(w, 0.45)


FROZEN = [
    "fedavg", "prox", "scaffold", "feddyn", "feddc", "cm", "sam", "asam", "lesam", "fedsmoo", "mofedsam", "fedgamma",
    "fedspeed", "fedlesam_s", "fedlesam_d", "init", "momentum", "nova", "gh", "eve", "avgm", "server(lr=0.7)",
    "uniform",
    "clip(max=0.5)", "prox + clip(max=0.5, scope='prox_inside')", "prox + clip(max=0.5, scope='data_only')",
    "dyn + clip(max=0.5, scope='prox_inside')", "prox + clip(max=1e6)",
]  # fmt: skip


@pytest.mark.parametrize("text", FROZEN)
def test_low_frequencies_are_frozen(text):
    """ML 8.5.4: wd = 0: max |P_low(w^T - w^0)| < 1e-12, for any aggregation whose weights sum to 1."""
    path = hard(f"{text} + specgrad(r=0.45)")
    assert all(low(w - BEGIN).abs().max() < 1e-12 for w in path)
    assert (path[-1] - BEGIN).norm() > 0.1


def test_an_active_official_clip_leaks():
    """ML 8.5.4, 1.3: 'except an active clip in official scope', which moves P_low w."""
    path = hard("prox(mu=1.0) + clip(max=0.5) + specgrad(r=0.45)")
    assert low(path[-1] - BEGIN).abs().max() > 1e-4


def test_decay_alone_moves_low_frequencies():
    """ML 8.5.4: wd > 0 and FedAvg: P_low w^T = P_low w^0 prod_t (1 - eta_t wd)^K exactly."""
    rates = [0.1, 0.09, 0.05, 0.2]
    path = hard("specgrad(r=0.45) + wd(wd=0.3)", rounds=4, steps=5, lr=rates, cohort=None)
    shrunk = np.cumprod([(1 - rate * 0.3) ** 5 for rate in rates])
    for w, factor in zip(path, shrunk, strict=True):
        close(low(w), factor * low(BEGIN))


@throwaway("filter_all")
class FilterAll(Part, Descend):
    """The filter on gradient and corrections, before anything else of Descend (AD B7)."""

    def descend(self, g, carry, s):
        return s.layout.map(lambda _, t: highpass(t, 0.45), g), carry


@pytest.mark.parametrize("base", ["fedavg", "prox", "scaffold", "feddyn", "feddc", "cm", "init", "momentum"])
def test_filtering_everything_is_filtering_data(base):
    """ML 8.5.5, 6.3: wd = 0: the corrections stay in range(HP), for SCAFFOLD by option II; to 1e-10."""
    close(hard(sum_of(base, "specgrad(r=0.45)")), hard(sum_of(base, FilterAll())), 1e-10)


def test_filter_commutes_with_averaging():
    """ML 6.3: K = 1: filtering on the client is filtering the mean gradient on the server; not so for K > 1."""
    one = {"rounds": 1, "steps": 1, "cohort": None}
    close(hard("specgrad(r=0.45)", **one)[0], BEGIN + highpass(hard("fedavg", **one)[0] - BEGIN, 0.45))
    many = {**one, "steps": 5}
    assert (
        hard("specgrad(r=0.45)", **many)[0] - BEGIN - highpass(hard("fedavg", **many)[0] - BEGIN, 0.45)
    ).norm() > 1e-3


# --- 8.5.6 and 7: the filter


@pytest.mark.parametrize(
    "r, v, expected",
    [
        (0.25, range(1, 9), (-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5)),
        (0.45, range(1, 9), (-2.5, -0.085786, 0.914214, 0.5, -0.5, -0.914214, 0.085786, 2.5)),
        (0.4, (1, 2, 4, 8, 16), (-5.2, -4.2, -2.2, 1.8, 9.8)),  # odd length: L = 3, k = 1, five values out
    ],
)
def test_filter_vectors(r, v, expected):
    """ML 8.5.6."""
    close(highpass(torch.tensor(list(v), dtype=F64), r), expected, 0.51e-6, 0)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (8,), (3, 5), (4, 3, 3, 3), (5, 1, 3, 3)])
@pytest.mark.parametrize("r", [0.0, 0.05, 0.3, 0.5, 0.99, 1.0])
def test_filter_is_an_orthogonal_projector(r, shape):
    """ML 7.1, 8.5.6: idempotent, <HP x, y> = <x, HP y>, norm <= 1, shape kept; HP(const) = 0 iff k >= 1, row-major."""
    draw = torch.Generator().manual_seed(4)
    x, y = (torch.randn(shape, generator=draw, dtype=F64) for _ in range(2))
    hx = highpass(x, r)
    assert hx.shape == x.shape
    close(highpass(hx, r), hx)
    close((hx * y).sum(), (x * highpass(y, r)).sum())
    assert hx.norm() <= x.norm() * (1 + 1e-12)
    close(hx.reshape(-1), highpass(x.reshape(-1), r))
    bins = x.numel() // 2 + 1
    gone = int(r * bins) >= 1
    close(highpass(torch.ones(shape, dtype=F64), r), torch.full(shape, 0.0 if gone else 1.0))
    assert gone or torch.equal(hx, x)  # ML 7.2: k = 0 passes untouched, to the bit
    assert int(r * bins) < bins or not hx.abs().max() > 1e-12


@pytest.mark.parametrize("r", [0.1, 0.5, 0.9])
def test_kept_energy_of_noise(r):
    """ML 8.5.6: a random signal keeps a fraction ~1 - r of its energy."""
    x = torch.randn(20001, generator=torch.Generator().manual_seed(6), dtype=F64)
    assert abs(float(highpass(x, r).square().sum() / x.square().sum()) - (1 - r)) < 0.02


def removed(n: int, r: Any, dtype: torch.dtype = F64) -> int:
    """k, by Parseval: of an impulse, whose bins are all equal, 2 k - 1 of n dimensions go."""
    impulse = torch.zeros(n, dtype=dtype)
    impulse[0] = 1
    return round((n * (1 - float(highpass(impulse, r).double().square().sum())) + 1) / 2)


@pytest.mark.parametrize("percent", [1, 3, 5, 6, 7, 10])
def test_number_of_removed_bins_is_exact(percent, monkeypatch):
    """ML 7.1, AD 'What holds': k = floor(r L) for these r and all L < 5000; r a tensor as executors pass it.

    The transforms are left out for time: what goes in is taken for the bins, and what comes out shows which are kept.
    """
    monkeypatch.setattr(torch.fft, "rfft", lambda v: v)
    monkeypatch.setattr(torch.fft, "irfft", lambda bins, n: bins)
    r, ones = torch.tensor(percent / 100, dtype=F64), torch.ones(5000)
    for bins in range(1, 5000):
        kept = highpass(ones[:bins], r)
        k = percent * bins // 100
        assert not kept[:k].any() and kept[k:].all(), bins


TABLE = {  # ML 7.2: d_l -> k at r = .01, .05
    10: (0, 0), 16: (0, 0), 32: (0, 0), 64: (0, 1), 128: (0, 3), 256: (1, 6), 432: (2, 10), 512: (2, 12), 640: (3, 16),
    2048: (10, 51), 2304: (11, 57), 4608: (23, 115), 5120: (25, 128), 9216: (46, 230), 9408: (47, 235),
    18432: (92, 460), 36864: (184, 921), 73728: (368, 1843), 147456: (737, 3686), 294912: (1474, 7372),
    589824: (2949, 14745), 1179648: (5898, 29491), 2359296: (11796, 58982),
}  # fmt: skip


@pytest.mark.parametrize("n", TABLE)
def test_table_of_removed_bins(n):
    """ML 7.2, by what the filter does; an impulse passes to the bit where k = 0."""
    impulse = torch.zeros(n, dtype=F64)
    impulse[0] = 1
    for r, k in zip((0.01, 0.05), TABLE[n], strict=True):
        if k:
            assert removed(n, r) == k
        else:
            assert torch.equal(highpass(impulse, r), impulse)


@pytest.mark.parametrize("r, untouched", [(0.01, 43), (0.05, 29)])
def test_untouched_tensors_of_resnet20(r, untouched):
    """ML 7.2: ResNet-20-GN: k = 0 for 43 of 65 tensors at r = .01 and for 29 of 65 at r = .05."""
    tensors = [torch.rand_like(p) for p in build("resnet20", {}, (3, 32, 32), 10, 0).parameters()]
    assert len(tensors) == 65 and sum(t.numel() for t in tensors) == 272_474
    assert sum(torch.equal(highpass(t, r), t) for t in tensors) == untouched


@pytest.mark.parametrize("r", [0.01, 0.05, 0.1])
def test_dead_taps(r):
    """ML 8.5.7, 1.2: a 3x3 convolution on a 1x1 map: 8 taps get no gradient, and of every removed bin the live taps
    keep exactly 8/9, while 1/9 leaks into the dead ones. (On the layer alone: ResNet-18 is not among the models.)"""
    draw = torch.Generator().manual_seed(7)
    conv = torch.nn.Conv2d(16, 16, 3, padding=1, bias=False, dtype=F64)
    (
        conv(torch.randn(4, 16, 1, 1, generator=draw, dtype=F64)) * torch.randn(4, 16, 1, 1, generator=draw, dtype=F64)
    ).sum().backward()
    g = conv.weight.grad
    assert g is not None and g.count_nonzero() == g[:, :, 1, 1].count_nonzero() == 256
    after, k = highpass(g, r), int(r * (2304 // 2 + 1))
    before, kept = (torch.fft.rfft(t[:, :, 1, 1].flatten()) for t in (g, after))
    close(torch.view_as_real(kept[:k]), 8 / 9 * torch.view_as_real(before[:k]))
    close(torch.view_as_real(kept[k:]), torch.view_as_real(before[k:]))
    assert k > 0 and after[:, :, 0, 0].abs().max() > 1e-3


def test_filter_keeps_the_type():
    """ML 7.5: float32 stays float32 beside an r in float64."""
    assert highpass(torch.rand(100), torch.tensor(0.1, dtype=F64)).dtype == torch.float32


# --- 8.5.8 to 8.5.10 bookkeeping


def test_partial_participation():
    """ML 8.5.8: N = 10, S = {0, 1}: c changes by (1/10) sum, h of others is untouched, the server's mean is over 10."""
    draw = torch.Generator().manual_seed(13)
    a, b = 0.5 + torch.rand(10, 4, generator=draw, dtype=F64), torch.randn(10, 4, generator=draw, dtype=F64)
    fed = quadratics("feddc", a, b, torch.ones(4, dtype=F64))
    ups = fed.go({0: 5, 1: 3}, lr=0.1)
    c, h = fed.memory["scaffold"]["c"], fed.memory["dyn"]["h"]
    close(c[:2], -ups.delta / (0.1 * vector(5, 3)[:, None]))
    close(fed.state("scaffold", "c"), c[:2].sum(0) / 10)
    close(h[:2], ups.delta)
    assert not c[2:].any() and not h[2:].any()
    close(fed.server.w, 1 + ups.delta.mean(0) + h.sum(0) / 10)


def test_unequal_step_counts():
    """ML 8.5.9: n = 30 and 500, b = 50: K = 1 and 10; client 0's variate is made with K_0, the current rate and c."""
    steps = {i: Work(batch=50).count(n) for i, n in enumerate((30, 500))}
    assert steps == {0: 1, 1: 10} and Work(batch=50, epochs=3).count(500) == 30
    fed = quadratics("scaffold", sizes=[30.0, 500.0])
    for rate in (0.1, 0.05):
        c, own = fed.state("scaffold", "c"), fed.memory["scaffold"]["c"].clone()
        ups = fed.go(steps, lr=rate)
        close(fed.memory["scaffold"]["c"], own - c - ups.delta / (rate * vector(1, 10)[:, None]))


@pytest.mark.parametrize(
    "more",
    [
        "",
        " + momentum",
        " + momentum(beta=0.5)",
        " + init(beta=0.3)",
        " + init + momentum",
        " + lesam",
        " + nova",
        " + avgm",
    ],
)
def test_variates_are_mean_local_gradients(more):
    """ML 5.3: c_i is the client's mean gradient, so under a constant gradient it is that gradient from round 1 on.

    Beside momentum by the effective step count (K - m (1 - m^K)/(1 - m))/(1 - m); beside init measured from the start
    of the local run (DE 14).
    """
    slopes = CENTRES[:, :3]
    fed = linears("scaffold" + more, slopes, sizes=[3.0, 1.0, 5.0, 2.0])
    for cohort, rate in zip(COHORTS, (0.1, 0.05, 0.2, 0.1), strict=True):
        fed.go(cohort, lr=rate)
        for i in cohort:
            close(fed.memory["scaffold"]["c"][i], slopes[i])


def test_equal_clients_have_nothing_to_correct():
    """ML 8.5.10: identical f_i: SCAFFOLD and FedAvg coincide for all rounds, c_i = c."""
    a, b = CURVES[:1].expand(4, 8), CENTRES[:1].expand(4, 8)
    run: dict[str, Any] = {"rounds": 6, "steps": 5, "lr": 0.1}
    for text, base in (
        ("scaffold", "fedavg"),
        ("fedgamma", "fedsam"),
        ("feddc", "feddyn"),
        ("gh", "fedavg"),
        ("nova", "fedavg"),
    ):
        close(trajectory(text, a, b, BEGIN, **run), trajectory(base, a, b, BEGIN, **run), 1e-11)
    fed = quadratics("scaffold", a, b, BEGIN)
    for _ in range(3):
        fed.go(5)
        close(fed.memory["scaffold"]["c"], fed.state("scaffold", "c").expand(4, 8))


@pytest.mark.parametrize("a, alpha, steps", [(1.0, 0.1, 5), (2.0, 0.5, 3), (3.0, 0.01, 1)])
def test_round_map_of_dyn(a, alpha, steps):
    """ML 5.4: f = a/2 w^2: (w, h) -> [[1 - 2sa, 1 - 2s alpha], [-sa, 1 - s alpha]], determinant q; stable."""
    columns = []
    for w, h in ((1.0, 0.0), (0.0, 1.0)):
        fed = quadratics(
            f"dyn(alpha={alpha})", torch.full((3, 1), a, dtype=F64), torch.zeros(3, 1, dtype=F64), vector(0.0)
        )
        fed.server = fed.server._replace(w=vector(w), parts={"dyn": {"h": vector(h)}})
        fed.memory["dyn"]["h"].fill_(h)
        fed.go(steps)
        columns.append([float(fed.server.w), float(fed.state("dyn", "h"))])
    got, q = torch.tensor(columns, dtype=F64).T, (1 - 0.1 * (a + alpha)) ** steps
    s = (1 - q) / (a + alpha)
    close(got, [[1 - 2 * s * a, 1 - 2 * s * alpha], [-s * a, 1 - s * alpha]])
    close(torch.linalg.det(got), q)
    assert torch.linalg.eigvals(got).abs().max() < 1


# --- 8.6 one-liners


@pytest.mark.parametrize("text", ["prox(mu=0.3)", "dyn(alpha=0.3)"])
def test_the_proximal_norm_is_squared(text):
    """ML 8.6: the prox gradient at ||w - w^t|| = 10 is 10 times that at 1, in the same direction."""
    part: Any = parse(text).parts[0]
    unit = BEGIN / BEGIN.norm()
    one, ten = (
        part.correct(
            SimpleNamespace(w=5 + r * unit, anchor=torch.full((8,), 5.0, dtype=F64), mem={"h": torch.zeros(8)})
        )
        for r in (1, 10)
    )
    close(ten, 10 * one)
    close(one, 0.3 * unit)


@throwaway("wrong_scaffold")
class WrongScaffold(Scaffold):
    """The correction with its sign turned, as FedFFT-S is printed."""

    def correct(self, s):
        return -super().correct(s)


@throwaway("wrong_dyn")
class WrongDyn(Dyn):
    """g - alpha h_i + alpha (w - w^t)."""

    def correct(self, s):
        return self.alpha * (s.w - s.anchor - s.mem["h"])


@throwaway("printed_dyn")
class PrintedDyn(WrongDyn):
    """FedFFT-D as printed: besides, the server takes the plain mean."""

    def update(self, delta, r):
        return delta, r.st


def crossings(path: torch.Tensor) -> list[int]:
    """The first round with ||w|| above 1e3, 1e6, 1e10."""
    return [int((path.norm(dim=1) > bound).nonzero()[0]) + 1 for bound in (1e3, 1e6, 1e10)]


@pytest.mark.parametrize(
    "part, rounds", [(WrongScaffold(), [18, 30, 47]), (WrongDyn(), [242, 432, 684]), (PrintedDyn(), [242, 432, 684])]
)
def test_wrong_signs_diverge(part, rounds):
    """AD B9: first round with ||w|| > 1e3, 1e6, 1e10 on P8."""
    assert crossings(p8(sum_of(part), rounds=rounds[-1])) == rounds


def test_clip_after_corrections_bounds_the_step():
    """ML 8.6: with c - c_i of norm 100 and g = 0 the step has norm <= eta (10 + wd ||w||)."""
    fed = quadratics("scaffold + clip(max=10) + wd(wd=0.01)", torch.zeros(2, 8, dtype=F64), w0=BEGIN)
    fed.server = fed.server._replace(
        parts={"scaffold": {"c": 100 * CENTRES[0] / CENTRES[0].norm()}, "clip": {}, "wd": {}}
    )
    fed.go(1)
    moved = (fed.server.w - BEGIN).norm()
    assert 0.1 * (10 - 0.01 * BEGIN.norm()) - 1e-6 < moved <= 0.1 * (10 + 0.01 * BEGIN.norm())


SEEN: list[torch.Tensor] = []


@throwaway("spy")
class Spy(Part, Perturb):
    """Notes every perturbation."""

    def perturb(self, e, s):
        SEEN.append(e.clone())
        return e


def perturbations(text: str, **changes: Any) -> list[torch.Tensor]:
    SEEN.clear()
    hard(sum_of(text, Spy()), **changes)
    return list(SEEN)


def test_sam_leaves_decay_out():
    """ML 8.6, 4.1: with wd = 1, doubling wd does not change the ascent direction (nor do clip and corrections)."""
    first = [perturbations(f"sam + {more}")[0] for more in ("wd(wd=1.0)", "wd(wd=2.0)", "clip(max=0.01)", "dyn")]
    assert all(torch.equal(first[0], e) for e in first)


def test_sam_comes_back():
    """ML 8.6: max |w_before - w_after_ascent_and_descent| is exactly 0 when the step has length 0."""
    fed = quadratics("sam(rho=3.0)", CURVES, CENTRES, BEGIN)
    fed.go(lr=0.0)
    assert torch.equal(fed.server.w, BEGIN)


@pytest.mark.parametrize(
    "text", ["sam(rho=0.3)", "lesam(rho=0.3)", "lesam(rho=0.3, mode='last_update')", "dyn + smoo(rho=0.3)"]
)
def test_radius_is_rho(text):
    """ML 8.6: ||e|| = rho to 1e-6 for the whole model; LESAM's is 0 at the first participation."""
    lengths = torch.stack([e.norm() for e in perturbations(text, cohort=None, steps=2, rounds=2)])
    if "lesam" in text:
        assert not lengths[:8].any()
        lengths = lengths[8:]
    close(lengths, torch.full_like(lengths, 0.3), 1e-6)
    assert len(lengths) in (8, 16)


def test_duals_of_smoo_add_up_perturbations():
    """ML 5.10: at every local step mu_i <- mu_i + e - s; an absent client keeps its mu_i."""
    fed, mu = quadratics(sum_of("dyn + smoo(rho=0.3)", Spy()), CURVES, CENTRES, BEGIN), torch.zeros(4, 8, dtype=F64)
    for cohort in COHORTS:
        SEEN.clear()
        s = fed.state("smoo", "s")
        fed.go(cohort)
        first = 0
        for i, steps in cohort.items():
            mu[i] += torch.stack(SEEN[first : first + steps]).sum(0) - steps * s
            first += steps
        close(fed.memory["smoo"]["mu"], mu)


def test_one_radius_for_the_whole_model():
    """ML 4.1, 9.1: the norm of SAM is global, not one a tensor: two equal halves get rho/sqrt(2) each."""
    half = torch.cat((CENTRES[:1, :4], CENTRES[:1, :4]), 1)
    SEEN.clear()
    layout = Layout(("a", "b"), ((4,), (2, 2)), 8)
    fed = quadratics(
        sum_of("sam(rho=0.3)", Spy()), torch.ones(1, 8, dtype=F64), half, torch.zeros(8, dtype=F64), layout=layout
    )
    fed.go(1)
    close(SEEN[0][:4].norm(), 0.3 / 2**0.5, 1e-6)


@pytest.mark.parametrize("text", ["sam(rho=0.3)", "asam(rho=0.3)", "dyn + smoo(rho=0.3)", "lesam(rho=0.3)"])
def test_no_gradient_no_perturbation(text):
    """ML 4.3: ||g|| = 0 gives e = 0, not 0/0."""
    still = quadratics(text, CURVES[:1], BEGIN[None], BEGIN)
    still.go(3)
    assert torch.equal(still.server.w, BEGIN)


def test_asam_scales_weights_only():
    """ML 4.2: T = |w| + eta for tensors whose name contains 'weight', 1 for others; e = rho T^2 g/||T g||, one norm."""
    SEEN.clear()
    layout = Layout(("norm.weight", "norm.bias"), ((5,), (3,)), 8)
    quadratics(sum_of("asam(rho=0.3, eta=0.02)", Spy()), CURVES[:1], CENTRES[:1], BEGIN, layout=layout).go(1)
    g, t = CURVES[0] * (BEGIN - CENTRES[0]), torch.cat((BEGIN[:5].abs() + 0.02, torch.ones(3, dtype=F64)))
    close(SEEN[0], 0.3 * t * t * g / (t * g).norm())


def test_lesam_points_to_what_the_client_last_received():
    """ML 5.11: e = rho unit(w_i_old - w^t), 0 at a late first participation, w_i_old as old as the absence."""
    SEEN.clear()
    fed = quadratics(sum_of("lesam(rho=0.3)", Spy()), CURVES, CENTRES, BEGIN)
    for cohort in ({0: 1}, {1: 1}, {0: 1, 2: 1}):
        fed.go(cohort)
    back = BEGIN - fed.down.w
    close(SEEN[2], 0.3 * back / back.norm())
    assert not SEEN[0].any() and not SEEN[1].any() and not SEEN[3].any()


def test_filter_of_personal_layers():
    """MS 11.2: 'filter only within the shared representation', perturb all; without `per` both tensors are filtered."""
    layout, full = Layout(("body", "head"), ((5,), (3,)), 8, head=("head",)), perturbations("sam(rho=0.3)")[0]
    body, head = full.split([5, 3])
    for more, left in (("", highpass(head, 0.6)), (" + per", head)):
        SEEN.clear()
        method = sum_of("sam(rho=0.3)" + more, SpecThenSpy(r=0.6))
        quadratics(method, CURVES[:1], CENTRES[:1], BEGIN, layout=layout).go(1)
        close(SEEN[0], torch.cat((highpass(body, 0.6), left)))


def test_filtered_radius_is_not_scaled_back():
    """ML 1.10, 6.1: FedFFT's radius is rho sqrt(kept energy) < rho."""
    full = perturbations("sam(rho=0.3)")[0]
    SEEN.clear()
    hard(sum_of("sam(rho=0.3)", SpecThenSpy(r=0.45)))
    filtered = SEEN[0]
    close(filtered, highpass(full, 0.45))
    assert filtered.norm() < 0.29


@throwaway("spec_then_spy")
class SpecThenSpy(Part, Perturb):
    """specpert, and a look at what it leaves."""

    r: float = 0.45

    def perturb(self, e, s):
        (filtered,) = (p for p in parse(f"sam + specpert(r={float(self.r)})").parts if isinstance(p, Perturb))
        SEEN.append(filtered.perturb(e, s))
        return SEEN[-1]


@pytest.mark.parametrize("steps", [{0: 5, 1: 5}, {0: 3, 1: 7}, {0: 1, 1: 2}])
@pytest.mark.parametrize("more", ["", " + momentum(beta=0.5)"])
def test_cm_divides_by_the_rate_of_its_round(steps, more):
    """ML 8.6: constant g: D after t rounds is (1 - (1 - alpha)^t) g for any lr decay; DE 9 for unequal step counts.

    Beside momentum a step counts as long as it is, and the sum starts anew each round.
    """
    g = vector(1.0, -2.0, 0.5)
    fed = linears("cm(alpha=0.3)" + more, g.expand(2, 3), sizes=[3.0, 1.0])
    for t, rate in enumerate((0.1, 0.03, 0.5, 0.2), 1):
        fed.go(steps, lr=rate)
        close(fed.state("cm", "d"), (1 - 0.7**t) * g)


# --- momentum, clip


@pytest.mark.parametrize("wd", [0.0, 0.05])
@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_momentum_is_torchs(wd, engine):
    """AD A13: equal to torch.optim.SGD to 1e-12, decay through the buffer, a new buffer each round."""
    got = hard(f"momentum(beta=0.9) + wd(wd={wd})", rounds=3, lr=[0.1, 0.05, 0.02], cohort=None, engine=engine)
    w, p = BEGIN, vector(3, 1, 5, 2) / 11
    for t, rate in enumerate((0.1, 0.05, 0.02)):
        ends = []
        for i, steps in enumerate((3, 5, 1, 4)):
            x = w.clone().requires_grad_()
            optimiser = torch.optim.SGD([x], lr=rate, momentum=0.9, weight_decay=wd)
            for _ in range(steps):
                optimiser.zero_grad()
                (0.5 * CURVES[i] * (x - CENTRES[i]).square()).sum().backward()
                optimiser.step()
            ends.append(x.detach())
        w = p @ torch.stack(ends)
        close(got[t], w)


def test_two_steps_of_momentum():
    """AD A13: constant g, wd 0, rho .9: after two steps w has moved 2.9 eta g."""
    fed = linears("momentum(beta=0.9)", vector(1.0, -2.0).expand(1, 2))
    fed.go(2)
    close(fed.server.w, -2.9 * 0.1 * vector(1.0, -2.0))


@pytest.mark.parametrize("scope, end", [("official", 199.0), ("prox_inside", 200.0), ("data_only", 200.0)])
def test_prox_leak(scope, end):
    """ML 5.2: w^t = 200, g = 0, mu = eta = .1: true FedProx stays at 200, `official` gives 199."""
    zero = torch.zeros(1, 1, dtype=F64)
    fed = quadratics(f"prox(mu=0.1) + clip(max=10.0, scope='{scope}')", zero, zero, vector(200.0))
    fed.go(1)
    close(fed.server.w, [end], 1e-6, 0)


STEP = {  # data 30, correction 7, A = .5, w = 4, w^t = 2: what is stepped along, with max 10
    "official": 10 + 0.5 * 4,  # clip(30 + 7 + .5 (4 - 2) - .5 * 4 = 36) + .5 * 4
    "prox_inside": 10.0,
    "data_only": 10 + 7 + 0.5 * (4 - 2),
}


@pytest.mark.parametrize("scope", STEP)
def test_scopes_of_the_clip(scope):
    """ML 2.1, DE 2."""
    step: Any = SimpleNamespace(data=vector(30.0), stiffness=0.5, w=vector(4.0), layout=Layout(("w",), ((1,),), 1))
    clip: Any = Clip(max=10.0, scope=scope)
    close(clip.descend(vector(30.0 + 7 + 0.5 * 2), {}, step)[0], [STEP[scope]], 1e-5, 0)
    idle: Any = Clip(max=1e6, scope=scope)
    close(idle.descend(vector(38.0), {}, step)[0], [38.0])


def test_decay_is_not_clipped():
    """ML 2.1: w <- w - eta (CLIP(u) + wd w), in whatever order the text has them."""
    for order in itertools.permutations(("clip(max=1.0)", "wd(wd=0.5)", "prox")):
        fed = quadratics(" + ".join(order), torch.ones(1, 1, dtype=F64), torch.zeros(1, 1, dtype=F64), vector(100.0))
        fed.go(1)
        # official: clip(100 - 10) + 10, then the decay
        close(fed.server.w, [100 - 0.1 * (1 + 10 + 50)], 1e-6, 0)


def test_clip_is_torchs():
    """ML 0.2: v min(1, M/(||v|| + 1e-6)), as torch.nn.utils.clip_grad_norm_."""
    x = torch.zeros(8, dtype=F64, requires_grad=True)
    x.grad = (A * (W0 - B))[0].clone()
    torch.nn.utils.clip_grad_norm_([x], 0.7)
    close(trajectory("clip(max=0.7)", A[:1], B[:1], W0, rounds=1, steps=1, lr=0.1)[0], W0 - 0.1 * x.grad)


def test_two_local_steps_of_everything():
    """ML 2.1, 6.2: perturb, differentiate, filter the data gradient, correct, clip, decay, momentum, in this order."""
    text = "cm(alpha=0.4) + scaffold + prox(mu=0.2) + sam(rho=0.3, eps=1e-16) + specpert(r=0.3) + specgrad(r=0.5)"
    fed = quadratics(f"{text} + clip(max=0.8, scope='data_only') + wd(wd=0.1) + momentum(beta=0.7)", A[:1], B[:1], W0)
    c, own, mean = CENTRES[0], CENTRES[1], CENTRES[2]
    states = {name: {} for name in fed.server.parts} | {"scaffold": {"c": c}, "cm": {"d": mean}}
    fed.server = fed.server._replace(parts=states)
    fed.memory["scaffold"]["c"].copy_(own)
    fed.go(2)
    w, m = W0, torch.zeros(8, dtype=F64)
    for _ in range(2):
        g = A[0] * (w - B[0])
        e = highpass(0.3 * g / g.norm(), 0.3)
        data = 0.4 * highpass(A[0] * (w + e - B[0]), 0.5)
        u = data * min(1.0, 0.8 / (float(data.norm()) + 1e-6)) + 0.6 * mean + c - own + 0.2 * (w - W0)
        m = 0.7 * m + u + 0.1 * w
        w = w - 0.1 * m
    close(fed.server.w, w)
    close(fed.memory["scaffold"]["c"][0], own - c - (w - W0) / (0.1 * 2.7))  # 1 + (1 + .7) plain steps
    close(fed.state("cm", "d"), -(w - W0) / (0.1 * 2.7))


def test_relaxed_start():
    """ML 3.1: a client starts from w^t + beta (w^t - w_i_last), w_i_last its own last end; the update is from w^t."""
    fed = quadratics("init(beta=0.3)", CURVES, CENTRES, BEGIN)
    fed.go({0: 3})
    last = fed.server.w
    fed.go({1: 2})
    w = fed.server.w
    ups = fed.go({0: 1, 2: 1})
    start = torch.stack((w + 0.3 * (w - last), w))
    close(w + ups.delta, start - 0.1 * CURVES[[0, 2]] * (start - CENTRES[[0, 2]]))
