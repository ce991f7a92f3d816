"""The oracles against the specs: golden rows and limits (golden.py), then what no row covers, worked out by hand."""

import math

import golden
import numpy as np
import pytest
from _run import HALF, exact, flat, rows, run

ROWS = {**golden.LOCAL, **golden.CLIPPED, **golden.SERVER}


@pytest.mark.parametrize("name", ROWS)
def test_golden_rows(name):
    row = ROWS[name]
    path = run(row["oracle"], steps=row["steps"], sizes=row["sizes"], **row["options"])
    rows(path, row["rows"])


@pytest.mark.parametrize("name", golden.CLIPPED_NORMS)
def test_golden_norms(name):
    path = run("clipped", **ROWS[name]["options"])
    assert abs(np.linalg.norm(path[2]) - golden.CLIPPED_NORMS[name]) < HALF


def test_optimum():
    np.testing.assert_allclose(golden.OPTIMUM, golden.OPTIMUM_PRINTED, rtol=0, atol=HALF)
    assert abs(np.linalg.norm(golden.OPTIMUM) - golden.OPTIMUM_NORM) < HALF


@pytest.mark.parametrize("name", golden.LIMITS)
def test_limits(name):
    _, oracle, options, steps, printed, tolerance = golden.LIMITS[name]
    w = run(oracle, rounds=3000, steps=steps, **options)[-1]
    assert abs(np.linalg.norm(w - golden.OPTIMUM) - printed) < tolerance


@pytest.mark.parametrize("name", golden.LIMIT_NORMS)
def test_limit_norms(name):
    _, oracle, options, printed, tolerance = golden.LIMIT_NORMS[name]
    assert abs(np.linalg.norm(run(oracle, rounds=3000, **options)[-1]) - printed) < tolerance


@pytest.mark.parametrize("name", golden.NO_LIMIT)
def test_no_limit(name):
    _, oracle, options, printed, tolerance = golden.NO_LIMIT[name]
    moved = np.linalg.norm(np.diff(run(oracle, rounds=3000, **options)[-100:], axis=0), axis=1)
    assert np.abs(moved - printed).max() < tolerance


def test_eve_distances():
    fixed = run("fedavg", rounds=500)[-1]
    path = run("eve", rounds=20000)
    for t, printed in golden.EVE_DISTANCES.items():
        assert abs(np.linalg.norm(path[t - 1] - fixed) / printed - 1) < 0.05


@pytest.mark.parametrize("name", golden.EVE_GAIN)
def test_eve_gain(name):
    """G out of the trajectory: M = w - w', D from FedAvg started at w - M_old, M = M_old + G (D - M_old)."""
    row = golden.SERVER[name]
    w, M = golden.W0, np.zeros(8)
    for printed, new in zip(golden.EVE_GAIN[name], run("eve", sizes=row["sizes"], **row["options"]), strict=True):
        D = (w - M) - run("fedavg", w0=w - M, rounds=1, sizes=row["sizes"])[0]
        G = ((w - new) - M) / (D - M)
        np.testing.assert_allclose(G, printed, rtol=0, atol=2 * HALF)
        w, M = new, w - new


# --- what no golden row covers -------------------------------------------------------------------------------------

RNG = np.random.default_rng(7)
MANY = (RNG.uniform(0.5, 2, (5, 9)), RNG.normal(size=(5, 9)), RNG.normal(size=9))
PARTIAL = {"cohort": [[0, 3], [1, 2, 4], [0], [4, 3, 1]], "sizes": [4, 1, 7, 2, 3], "steps": [2, 5, 1, 3, 4]}

SAME = {  # two oracles that must agree, on unequal sizes and steps and partial cohorts (ML 8.5.1, MS 14)
    "prox mu=0": ("prox", {"mu": 0.0}, "fedavg", {}),
    "server": ("server", {"server_lr": 1.0}, "fedavg", {}),
    "wd 0": ("wd", {"wd": 0.0}, "fedavg", {}),
    "momentum 0": ("momentum", {"beta": 0.0}, "fedavg", {}),
    "nova_momentum 0": ("nova_momentum", {"beta": 0.0}, "nova", {}),
    "scaffold_momentum 0": ("scaffold_momentum", {"beta": 0.0}, "scaffold", {}),
    "init 0": ("init", {"beta": 0.0}, "fedavg", {}),
    "sam 0": ("sam", {"rho": 0.0}, "fedavg", {}),
    "asam 0": ("asam", {"rho": 0.0}, "fedavg", {}),
    "lesam 0": ("lesam", {"rho": 0.0}, "fedavg", {}),
    "lesam last 0": ("lesam", {"rho": 0.0, "mode": "last_update"}, "fedavg", {}),
    "cm alpha=1": ("cm", {"alpha": 1.0}, "fedavg", {}),
    "mofedsam alpha=1": ("mofedsam", {"alpha": 1.0}, "sam", {}),
    "mofedsam rho=0": ("mofedsam", {"rho": 0.0}, "cm", {}),
    "fedgamma 0": ("fedgamma", {"rho": 0.0}, "scaffold", {}),
    "fedspeed 0": ("fedspeed", {"rho": 0.0}, "dyn", {}),
    "smoo 0": ("smoo", {"rho": 0.0}, "dyn", {}),
    "fedlesam_s 0": ("fedlesam_s", {"rho": 0.0}, "scaffold", {}),
    "fedlesam_d 0": ("fedlesam_d", {"rho": 0.0}, "dyn", {}),
    "specgrad r=0": ("specgrad", {"r": 0.0}, "fedavg", {}),
    "specpert r=0": ("specpert", {"r": 0.0}, "sam", {}),
    "specpert all": ("specpert", {"r": 1.0}, "fedavg", {}),
    "fedfft_s r=0": ("fedfft_s", {"r": 0.0}, "fedgamma", {}),
    "fedfft_d r=0": ("fedfft_d", {"r": 0.0}, "fedspeed", {}),
    "sgf_prox r=0": ("sgf_prox", {"r": 0.0}, "prox", {}),
    "sgf_prox mu=0": ("sgf_prox", {"mu": 0.0, "r": 0.45}, "specgrad", {"r": 0.45}),
    "sgf_scaffold r=0": ("sgf_scaffold", {"r": 0.0}, "scaffold", {}),
    "sgf_dyn r=0": ("sgf_dyn", {"r": 0.0}, "dyn", {}),
    "avgm 0": ("avgm", {"beta": 0.0}, "fedavg", {}),
    "gc flat": ("gc", {"shape": (9,)}, "fedavg", {}),
    "gc of a row = bin 0": ("gc", {"shape": (1, 9)}, "specgrad", {"r": 0.25}),  # floor(.25 * 5) = 1
    "clip off": ("clip", {"max": 1e9}, "fedavg", {}),
    "clip + wd": ("clip", {"max": 1e9, "wd": 0.1}, "wd", {"wd": 0.1}),
    "clip = clipped": ("clip", {"max": 0.5, "mu": 0.1, "wd": 0.01}, "clipped", {"name": "fedprox", "max": 0.5}),
}
UNCLIPPED = {
    "fedavg": "fedavg", "fedprox": "prox", "scaffold": "scaffold", "feddyn": "dyn", "fedcm": "cm", "fedsam": "sam",
    "mofedsam": "mofedsam", "fedgamma": "fedgamma", "fedspeed": "fedspeed", "fedsmoo": "smoo",
}  # fmt: skip
for scope in ("official", "prox_inside", "data_only"):
    for one, two in UNCLIPPED.items():
        SAME[f"clipped {one} {scope}"] = ("clipped", {"name": one, "max": 1e9, "wd": 0.0, "scope": scope}, two, {})


@pytest.mark.parametrize("name", SAME)
def test_same(name):
    one, options, two, others = SAME[name]
    left = run(one, *MANY, rounds=9, **PARTIAL, **options)
    right = run(two, *MANY, rounds=9, **PARTIAL, **others)
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-12)


def test_weights():
    """MS 3, test (i): u = 2, -1 and n = 3, 1 give 1.25; uniform 0.5; server rate 2 doubles it; empty counts nothing."""
    case = dict(rounds=1, steps=1, lr=1.0)
    assert run("fedavg", *exact([2], [-1]), sizes=[3, 1], **case)[0, 0] == 1.25
    assert run("uniform", *exact([2], [-1]), sizes=[3, 1], **case)[0, 0] == 0.5
    assert run("server", *exact([2], [-1]), sizes=[3, 1], server_lr=2.0, **case)[0, 0] == 2.5
    assert run("uniform", *exact([2], [9], [-1]), sizes=[3, 0, 1], **case)[0, 0] == 0.5


def test_decay():
    """g = 0: w (1 - eta wd)^K a round (ML 8.5.4)."""
    w = run("wd", np.zeros((2, 1)), np.zeros((2, 1)), np.ones(1), rounds=2, steps=5, wd=0.5)
    np.testing.assert_allclose(w[:, 0], [0.95**5, 0.95**10], rtol=1e-14)


def test_momentum():
    """AD A13: 2.9 eta g after two steps; MS 6: a(5), a(10); with decay as torch.optim.SGD."""
    for steps, factor in ((1, 1.0), (2, 2.9), (5, 13.1441), (10, 41.38106)):
        w = run("momentum", *flat([1.0]), rounds=1, steps=steps)
        assert abs(w[0, 0] + 0.1 * factor) < 1e-6


def test_local_adam_is_torch():
    torch = pytest.importorskip("torch")
    a, b, w0 = (torch.tensor(x, dtype=torch.float64) for x in (golden.A, golden.B, golden.W0))
    w, options = w0.clone(), {"betas": (0.8, 0.9), "eps": 1e-4, "weight_decay": 0.01}
    for _ in range(3):
        ends = []
        for k in range(2):
            x = w.clone().requires_grad_()
            adam = torch.optim.Adam([x], lr=0.1, **options)
            for _ in range(5):
                adam.zero_grad()
                (0.5 * a[k] * (x - b[k]) ** 2).sum().backward()
                adam.step()
            ends.append(x.detach())
        w = (ends[0] + ends[1]) / 2
    path = run("local_adam", beta1=0.8, beta2=0.9, eps=1e-4, wd=0.01)
    np.testing.assert_allclose(path[-1], w.numpy(), rtol=0, atol=1e-12)


def test_momentum_is_torch():
    torch = pytest.importorskip("torch")
    a, b, w0 = (torch.tensor(x, dtype=torch.float64) for x in (golden.A, golden.B, golden.W0))
    w = w0.clone()
    for _ in range(3):
        ends = []
        for k in range(2):
            x = w.clone().requires_grad_()
            sgd = torch.optim.SGD([x], lr=0.1, momentum=0.9, weight_decay=0.01)
            for _ in range(5):
                sgd.zero_grad()
                (0.5 * a[k] * (x - b[k]) ** 2).sum().backward()
                sgd.step()
            ends.append(x.detach())
        w = (ends[0] + ends[1]) / 2
    np.testing.assert_allclose(run("momentum", beta=0.9, wd=0.01)[-1], w.numpy(), rtol=0, atol=1e-12)


def test_nova():
    """MS 6: tau = (1, 3), u = (1, -3): FedAvg -1, FedNova 0; equal steps are FedAvg; a(1) = 1, a(2) = 2.9."""
    np.testing.assert_allclose(run("fedavg", *flat([-10], [10]), rounds=1, steps=[1, 3]), -1, atol=1e-6)
    np.testing.assert_allclose(run("nova", *flat([-10], [10]), rounds=1, steps=[1, 3]), 0, atol=1e-6)
    np.testing.assert_allclose(run("nova_momentum", *flat([-1], [-1]), rounds=1, steps=[1, 2]), 0.195, atol=1e-9)
    np.testing.assert_allclose(run("nova_momentum"), run("momentum"), rtol=0, atol=1e-12)
    case = {"cohort": PARTIAL["cohort"], "sizes": PARTIAL["sizes"]}
    np.testing.assert_allclose(run("nova_gh", *MANY, **case), run("gh", *MANY, **case), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run("nova", steps=[5, 0]), run("fedavg", cohort=[[0]]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("oracle", "factor"), [("scaffold", 3.0), ("scaffold_momentum", 5.61)])  # 1 + 1.9 + 2.71
def test_scaffold_counts_all_clients(oracle, factor):
    """g = 1 and g = 5, N = 2, client 0 alone: c_0 = 1, c = 1/2 after round 1; the second round moves half as far."""
    w = run(oracle, *flat([1], [5]), rounds=3, steps=3, cohort=[[0]])[:, 0]
    np.testing.assert_allclose(w, [-0.1 * factor, -0.15 * factor, -0.2 * factor], atol=1e-6)


@pytest.mark.parametrize("oracle", ["scaffold", "scaffold_momentum", "dyn", "feddc"])
def test_partial_participation_reaches_the_optimum(oracle):
    """K equal, cohorts in turn: the fixed point is the minimiser of the average (ML 5.3, 5.4, 5.15)."""
    a, b, w0 = MANY
    w = run(oracle, a, b, w0, rounds=8000, steps=2, lr=0.05, cohort=[[0, 3], [1, 2], [4, 0]])[-1]
    np.testing.assert_allclose(w, (a * b).mean(0) / a.mean(0), rtol=0, atol=1e-9)


def test_dyn_is_the_textbook():
    """ML 5.4: lambda_k <- lambda_k - alpha Delta_k, H <- H - alpha/N sum_S Delta, w = mean_S(x) - H/alpha."""
    a, b, w = MANY
    K, cohorts, alpha = PARTIAL["steps"], PARTIAL["cohort"], 0.1
    lam, H, path = np.zeros_like(a), np.zeros_like(w), []
    for t in range(9):
        S = cohorts[t % 4]
        ends = []
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - 0.1 * (a[k] * (x - b[k]) - lam[k] + alpha * (x - w))
            lam[k] -= alpha * (x - w)
            ends.append(x)
        H = H - alpha / 5 * sum(x - w for x in ends)
        w = sum(ends) / len(S) - H / alpha
        path.append(w)
    np.testing.assert_allclose(run("dyn", *MANY, rounds=9, **PARTIAL), path, rtol=0, atol=1e-12)


def test_dc_is_dyn_plus_scaffold():
    """Decisions 2: the sum of the two corrections, means over the cohort unweighted, h and c over all five clients."""
    a, b, w = MANY
    K, cohorts = PARTIAL["steps"], PARTIAL["cohort"]
    h, ci, path = np.zeros_like(a), np.zeros_like(a), []
    c = np.zeros_like(w)
    for t in range(9):
        S, ends, change = cohorts[t % 4], [], np.zeros_like(w)
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - 0.1 * (a[k] * (x - b[k]) + 0.1 * (x - w) + 0.1 * h[k] - ci[k] + c)
            h[k] += x - w
            ends.append(x)
            change += (w - x) / (K[k] * 0.1) - c
            ci[k] += (w - x) / (K[k] * 0.1) - c
        w, c = np.mean(ends, axis=0) + h.sum(0) / 5, c + change / 5
        path.append(w)
    np.testing.assert_allclose(run("feddc", *MANY, rounds=9, **PARTIAL), path, rtol=0, atol=1e-12)


def test_nova_gh_commutes():
    """MS 1.3: normalise first, then project, over unequal steps and sizes: the same model."""
    a, b, w = MANY
    S, K, n = [1, 2, 4, 3], PARTIAL["steps"], PARTIAL["sizes"]
    p = {k: n[k] / sum(n[j] for j in S) for k in S}
    d = {k: (b[k] + (1 - 0.1 * a[k]) ** K[k] * (w - b[k]) - w) / K[k] for k in S}  # K steps in closed form
    total = np.zeros_like(w)
    for k in S:
        v = d[k]
        for j in S:
            if j != k:
                v = v - min(0.0, v @ d[j]) / (d[j] @ d[j]) * d[j]
        total += p[k] * v
    expected = w + sum(p[k] * K[k] for k in S) * total
    got = run("nova_gh", *MANY, rounds=1, steps=K, sizes=n, cohort=[S])[0]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_cm_direction():
    """ML 8.6: with a constant gradient g, D after t rounds is (1 - (1 - alpha)^t) g, whatever K and the sizes are."""
    a, b, w0 = flat([1], [1])
    for steps in (4, [2, 6]):
        w = run("cm", a, b, w0, rounds=4, steps=steps, sizes=[3, 1], alpha=0.3)[:, 0]
        K = 4 if steps == 4 else 3
        moved = -np.diff(w, prepend=0) / (0.1 * K)  # = alpha g + (1 - alpha) D of the round before = D of this one
        np.testing.assert_allclose(moved, [1 - 0.7**t for t in (1, 2, 3, 4)], atol=1e-6)


def test_first_participation():
    """ML 5.11, FedInit: in paper form nothing happens at a client's first visit, even in round 2."""
    base = run("fedavg", rounds=3, cohort=[[0], [1]])
    for oracle in ("lesam", "init"):
        path = run(oracle, rounds=3, cohort=[[0], [1]])
        np.testing.assert_array_equal(path[:2], base[:2])
        assert np.abs(path[2] - base[2]).max() > 1e-3
    last = run("lesam", rounds=2, cohort=[[0], [1]], mode="last_update")
    assert np.abs(last[1] - base[1]).max() > 1e-3
    for oracle in ("lesam", "fedlesam_s", "fedlesam_d"):  # the same under full participation
        np.testing.assert_array_equal(run(oracle), run(oracle, mode="last_update"))


def test_lesam_by_hand():
    """1-D, a = 1, b = 0, w0 = 1, one step of 0.1: w1 = 0.9; e = rho sign(1 - 0.9) = 0.1, w2 = 0.9 - 0.1 * 1.0."""
    one = (np.ones((1, 1)), np.zeros((1, 1)), np.ones(1))
    np.testing.assert_allclose(run("lesam", *one, rounds=2, steps=1)[:, 0], [0.9, 0.8], rtol=1e-14)


def test_init_by_hand():
    """1-D, two clients a = 1, b = +-1, w0 = 1, one step of 0.5, beta 0.1.

    Round 1: ends 1, 0; w = 0.5. Round 2: starts 0.5 + 0.1 (0.5 - 1) = 0.45 and 0.55, ends 0.725, -0.225; w = 0.25.
    Round 3: starts 0.25 + 0.1 (0.25 - 0.725) = 0.2025 and 0.2975, ends 0.60125, -0.35125; w = 0.125.
    Weights 3, 1: round 1 w = 0.75; round 2 starts 0.725, 0.825, ends 0.8625, -0.0875; w = 0.625.
    """
    case = (np.ones((2, 1)), np.array([[1.0], [-1.0]]), np.ones(1))
    even = run("init", *case, rounds=3, steps=1, lr=0.5)
    np.testing.assert_allclose(even[:, 0], [0.5, 0.25, 0.125], rtol=1e-13)
    np.testing.assert_allclose(run("init", *case, rounds=2, steps=1, lr=0.5, sizes=[3, 1])[:, 0], [0.75, 0.625])


def test_smoo_first_step_and_rounds():
    """ML 5.10: the first local step of round 1 is FedSpeed's; the two forms differ from round 2 on."""
    np.testing.assert_allclose(run("smoo", rounds=1, steps=1), run("fedspeed", rounds=1, steps=1), rtol=0, atol=1e-15)
    paper, code = run("smoo", form="paper"), run("smoo", form="code")
    np.testing.assert_array_equal(paper[0], code[0])
    assert np.abs(paper[1] - code[1]).max() > 1e-5


def test_gc_rows_stand_still():
    """The mean of every row of [3, 3] never moves, and the rest does."""
    a, b, w0 = MANY
    w = run("gc", a, b, w0, rounds=4, shape=(3, 3))
    np.testing.assert_allclose(w.reshape(4, 3, 3).mean(2), np.tile(w0.reshape(3, 3).mean(1), (4, 1)), atol=1e-14)
    assert np.abs(w[0] - w0).max() > 0.1


def test_filter_vectors():
    """ML 8.5.6, through one step from 0 with a = 1, lr = 1: the update is the filtered b."""
    one = dict(rounds=1, steps=1, lr=1.0)
    expected = (-2.5, -0.085786, 0.914214, 0.5, -0.5, -0.914214, 0.085786, 2.5)
    np.testing.assert_allclose(run("specgrad", *exact(range(1, 9)), r=0.25, **one)[0], np.arange(8) - 3.5, atol=1e-12)
    np.testing.assert_allclose(run("specgrad", *exact(range(1, 9)), r=0.45, **one)[0], expected, atol=HALF)
    odd = run("specgrad", *exact([1, 2, 4, 8, 16]), r=0.4, **one)[0]
    np.testing.assert_allclose(odd, (-5.2, -4.2, -2.2, 1.8, 9.8), atol=1e-12)


def test_gh_by_hand():
    """MS 7, tests 1 to 3, opposite updates and order; MS 1.3 is in the golden row FedNova + FedGH."""
    one = dict(rounds=1, steps=1, lr=1.0)
    np.testing.assert_allclose(run("gh", *exact([1, 0], [-1, 1]), **one)[0], (0.25, 0.75), atol=1e-15)
    np.testing.assert_array_equal(run("gh", *exact([1, 0], [-2, 0]), **one)[0], (0, 0))
    np.testing.assert_array_equal(
        run("gh", *exact([1, 0], [2, 1]), **one), run("fedavg", *exact([1, 0], [2, 1]), **one)
    )
    three = exact([1, 0, 0], [-1, 1, 0], [-1, 0, 1])
    forth = run("gh", *three, **one)[0]
    back = run("gh", *three, order=lambda t, k, others: others[::-1], **one)[0]
    first = np.array([[0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])  # g1' in the two orders
    # clients 1 and 2 meet 0 and each other: g2 = (-1,1,0) -> (0,1,0); <(0,1,0), g3> = 0; back: <g2, g3> = 1, then 0
    np.testing.assert_allclose(forth, (first[0] + (0, 1, 0) + (0, 0, 1)) / 3, atol=1e-15)
    np.testing.assert_allclose(back, (first[1] + (0, 1, 0) + (0, 0, 1)) / 3, atol=1e-15)


def test_eve_edges():
    """MS 8: identical updates give G = 1; nothing moves: G := 1 and no NaN."""
    one = dict(rounds=1, steps=1, lr=1.0)
    np.testing.assert_allclose(run("eve", *exact([1, 2], [1, 2]), **one)[0], (1, 2))
    np.testing.assert_array_equal(run("eve", *exact([0, 0], [0, 0]), **{**one, "rounds": 3}), np.zeros((3, 2)))


def test_adam_steps():
    """MS 5, table of first steps."""
    one = dict(rounds=1, steps=1, lr=1.0)
    for options, printed in (
        ({"v0": "zero"}, (0.098039, -0.05, 0)),
        ({"v0": "tau2"}, (0.098020, -0.041482, 0)),
        ({"v0": "zero", "bias_correction": True}, (0.0998, -0.090909, 0)),
    ):
        np.testing.assert_allclose(run("adam", *exact([0.5, -0.01, 0]), **one, **options)[0], printed, atol=HALF)


def test_prox_leak():
    """ML 5.2: w = 200, g = 0, mu = eta = 0.1, clip 10: 199 in official scope, 200 otherwise."""
    case = (np.zeros((1, 1)), np.zeros((1, 1)), np.full(1, 200.0))
    for scope, expected in (("official", 199.0), ("prox_inside", 200.0), ("data_only", 200.0)):
        w = run("clip", *case, rounds=1, steps=1, max=10.0, mu=0.1, scope=scope)[0, 0]
        assert math.isclose(w, expected, abs_tol=1e-6)


def test_clip_scopes_differ():
    """Each scope as one client and one step by hand: g = 3, w_0 = 2 (a = 1, b = -1), mu 0.5, max 1, eta 0.1."""
    case = (np.ones((1, 1)), -np.ones((1, 1)), np.full(1, 2.0))
    # official: u = clip(3 - 1) + 1 = 2, w = 1.8; then g = 2.8, clip(2.8 - 1) + 0.9 = 1.9, w = 1.61
    # prox_inside: clip(3) = 1, w = 1.9; clip(2.9 - .05) = 1, w = 1.8.  data_only: 1.9; 1 - 0.05 = 0.95, w = 1.805
    for scope, ends in (("official", 1.61), ("prox_inside", 1.8), ("data_only", 1.805)):
        w = run("clip", *case, rounds=1, steps=2, max=1.0, mu=0.5, scope=scope)[0, 0]
        assert math.isclose(w, ends, abs_tol=1e-5)


def test_inputs_are_left_alone():
    a, b, w0 = (x.copy() for x in MANY)
    for name in ("scaffold", "dyn", "cm", "lesam", "init", "smoo", "eve", "adam", "gh", "nova"):
        run(name, a, b, w0, rounds=2, steps=2)
    for before, after in zip(MANY, (a, b, w0), strict=True):
        np.testing.assert_array_equal(before, after)
