"""The later oracles against every number the specs print for them; then reductions (MS 14, ML 8.5) and hand cases."""

import golden
import numpy as np
import pytest
from _problem import grad
from _run import HALF, exact, flat, load, rows, run

ONE = dict(rounds=1, steps=1, lr=1.0)  # with `exact`: one update a client


@pytest.mark.parametrize("name", golden.MORE)
def test_golden_rows(name):
    row = golden.MORE[name]
    rows(run(row["oracle"], steps=row["steps"], sizes=row["sizes"], **row["options"]), row["rows"])


def test_fedspeed_row():
    """ML 5.9: under full participation the paper's server is the code's; ML 8.2, line 576."""
    rows(run("speed"), golden.LOCAL["FedSpeed"]["rows"])


@pytest.mark.parametrize("mistake", golden.WRONG)
def test_the_mistakes_of_fedeve(mistake):
    """AD A4: the printed wrong rows come out of the printed mistakes, so the right rows exclude them."""
    w, M, s, path = golden.W0, np.zeros(8), 0.0, []
    for _ in range(3):
        ahead = w - M
        cast = w if "broadcast" in mistake else ahead
        ends = [run("fedavg", golden.A[[k]], golden.B[[k]], cast, rounds=1)[0] for k in (0, 1)]
        Delta = [cast - x for x in ends]
        mean = sum(Delta) / 2
        Q, R = np.sum((M - mean) ** 2) / 16, sum(np.sum((u - mean) ** 2) for u in Delta) / 32
        G = (s + Q) / (s + Q + R)
        M, s = M + G * (mean - M), (1 - G) * (s + Q)
        w = w - M if "broadcast" in mistake else ahead - M
        path.append(w)
    rows(np.array(path), golden.WRONG[mistake])


@pytest.mark.parametrize(
    "options, printed",
    [  # MS 5, table of first steps
        ({"rule": "yogi", "v0": "zero"}, (0.098039, -0.050000, 0)),
        ({"rule": "adagrad", "beta1": 0.0, "v0": "zero"}, (0.099800, -0.090909, 0)),
        ({"rule": "adagrad", "beta1": 0.9, "v0": "zero"}, (0.0099800, -0.0090909, 0)),
    ],
)
def test_first_steps(options, printed):
    np.testing.assert_allclose(run("adam", *exact([0.5, -0.01, 0]), **ONE, **options)[0], printed, atol=HALF)


def test_yogi_corrected_is_adam_corrected_at_first():
    """From v = 0 both have v = (1 - b2) Delta^2 after one step, whatever is divided afterwards."""
    case = {"v0": "zero", "bias_correction": True, **ONE}
    left, right = (run("adam", *exact([0.5, -0.01, 0]), **case, rule=rule) for rule in ("adam", "yogi"))
    np.testing.assert_allclose(left, right, rtol=1e-12)


def test_disco_weights():
    """MS 12.1: raw (.5, .25, .05)."""
    disco = load("disco")
    found = disco.weights(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]), 0.5, 0.1)
    np.testing.assert_allclose(found, (0.625, 0.3125, 0.0625), rtol=1e-12)
    np.testing.assert_array_equal(disco.distance(np.ones((3, 4)), "kl"), np.zeros(3))  # all zero: no division
    np.testing.assert_allclose(disco.distance(np.array([[2.0, 0], [1, 1], [0, 5]]), "kl"), (0.5, 0, 0.5))
    r = np.array([0.7, 0.3])
    np.testing.assert_array_equal(disco.weights(r, np.ones(2), 5.0, 0.0), r)  # nobody left: r
    # By hand, D = (1, 0), T = (1/2, 1/2): cosine 1 - 1/sqrt 2, l1 1, l2 1/sqrt 2
    for metric, printed in (("cosine", 1 - 0.5**0.5), ("l1", 1.0), ("l2", 0.5**0.5)):
        assert abs(disco.distance(np.array([[3.0, 0.0]]), metric)[0] - printed) < 1e-12


def test_awa_first_weights():
    """MS 12.2: sizes (.1, .2, .7) give .2546, .2814, .4640; twenty equal clients are within 1 % of 1/20."""
    w = run("awa", np.ones((3, 3)), np.eye(3), np.full(3, 0.5), sizes=[1, 2, 7], **ONE)[0]
    np.testing.assert_allclose(w, (0.2546, 0.2814, 0.4640), atol=0.5e-4)  # clients end at unit vectors
    fractions = 0.05 + 0.01 * np.linspace(-1, 1, 20)
    assert np.abs(load("awa").softmax(fractions) * 20 - 1).max() < 0.0101


def test_awa_moves_by_its_rate():
    """MS 12.2: a fresh Adam step is +-lr; one client, or identical ones, have no gradient; who is far loses weight."""
    awa, far = load("awa"), np.array([[1.0, 0.1], [1.0, -0.1], [-1.0, 3.0]])
    g = awa.gradient(np.zeros(3), far, np.array([1.0, 0.0]), "cos")
    assert g[2] > 0 > max(g[:2])
    for models in (far[:1], np.tile(far[0], (3, 1))):
        for kind in ("cos", "euc"):
            np.testing.assert_allclose(awa.gradient(np.arange(len(models)) / 7, models, far[1], kind), 0, atol=1e-15)
    h = 1e-6  # the complex step against differences
    T = np.array([0.1, -0.2, 0.3])
    for kind in ("cos", "euc"):
        numbers = [
            (awa.loss(T + h * u, far, far[1], kind) - awa.loss(T - h * u, far, far[1], kind)) / (2 * h)
            for u in np.eye(3)
        ]
        np.testing.assert_allclose(awa.gradient(T, far, far[1], kind), numbers, rtol=1e-8)


def test_lws_gammas():
    """MS 12.3: ||w|| = 10, g = 1: .99900 at tau .01, .98039 at .2; no update: 1; one participant: tau = .01."""
    gamma, w, mean = load("lws").gamma, np.array([10.0, 0]), np.array([10.0, 1])
    alone, apart = [mean - w], [np.array([0.0, 40]), np.array([0.0, -40])]
    for updates, beta, printed in ((alone, 0.03, 0.99900), (apart, 0.03, 0.98039), (apart, 0.0, 0.99900)):
        assert abs(gamma(w, mean, updates, beta, 0.01, 0.2) - printed) < 0.5e-5
    assert gamma(w, w, [np.zeros(2)], 0.03, 0.01, 0.2) == 1.0
    assert gamma(np.zeros(2), mean, alone, 0.03, 0.01, 0.2) == 1.0
    names = ["conv.weight", "norm.weight", "norm.bias", "fc.weight", "fc.bias"]
    assert load("lws").buckets(names) == [[0, 1, 2], [3, 4]]


def test_pcgrad_by_hand():
    """MS 7: the sum of test 2's vectors; order of test 3; rescaling of tests 4, 5; a zero vector of test 6."""
    np.testing.assert_allclose(run("pcgrad", *exact([1, 0], [-1, 1]), **ONE)[0], (0.5, 1.5), atol=1e-15)
    np.testing.assert_array_equal(run("pcgrad", *exact([1, 0], [2, 1]), **ONE)[0], (3, 1))
    g = {0: np.array([1.0, 0, 0]), 1: np.array([-1.0, 1, 0]), 2: np.array([-1.0, 0, 1])}
    projected = load("pcgrad").projected
    np.testing.assert_allclose(projected(g)[0], (0.25, 0.5, 0.25), atol=1e-15)
    np.testing.assert_allclose(projected(g, order=lambda k, j: j[::-1])[0], (0.25, 0.25, 0.5), atol=1e-15)
    longer = projected({**g, 1: 3 * g[1]})
    np.testing.assert_allclose(longer[0], projected(g)[0], atol=1e-15)
    np.testing.assert_allclose(longer[1], 3 * projected(g)[1], atol=1e-15)
    two = projected({0: g[0], 1: g[1]})
    assert abs(two[0] @ g[1]) < 1e-15
    zero = projected({0: g[0], 1: np.zeros(3)})
    np.testing.assert_array_equal(zero[0], g[0])
    np.testing.assert_array_equal(run("pcgrad", *exact([1, 2]), **ONE)[0], (1, 2))


def test_pcgrad_code_meets_itself():
    """MS 7: after two projections the running vector may turn against its own original."""
    g = {0: np.array([0.8, -0.5]), 1: np.array([0.2, -1.3]), 2: np.array([-0.5, 1.4])}
    code, paper = load("pcgrad").projected(g, "code")[2], load("pcgrad").projected(g)[2]
    assert paper @ g[2] < 0 and abs(code @ g[2]) < 1e-15


def test_gh_keeps_one_of_two():
    """MS 7 test 2 as a control: FedAvg (0, .5), FedGH (.25, .75)."""
    two, size = exact([1, 0], [-1, 1]), np.hypot(0.25, 0.75)
    np.testing.assert_allclose(run("gh", *two, keep="length", **ONE)[0], (0, size), atol=1e-15)
    turned = run("gh", *two, keep="direction", **ONE)[0]
    np.testing.assert_allclose(turned, np.array([0.25, 0.75]) * 0.5 / size, atol=1e-15)
    np.testing.assert_allclose(run("gh", *two, test_on="original", **ONE)[0], (0.25, 0.75), atol=1e-15)


def test_robust_by_hand():
    u = np.array([[0.0], [1.0], [2.0], [10.0], [3.0]])
    robust = load("robust")
    assert robust.median(u)[0] == 2.0 and robust.median(u[:4])[0] == 1.5
    assert robust.trimmed(u, 0.2)[0] == 2.0 and robust.trimmed(u, 0.19)[0] == u.mean()
    # f = 1, five updates: two neighbours; sums 5, 2, 2, 113, 5, so 1 and 2 are the two best, and 1 comes first
    assert robust.krum(u)[0] == 1.0 and robust.krum(u, m=2)[0] == 1.5
    assert robust.krum(u[:1])[0] == 0.0 and robust.krum(u[2:4])[0] == 2.0


def test_eve_count_empty():
    """Two clients and an empty one, round 1, energy and uniform: m = 3, mean (1, 1) / 2 and centre (1, 1) / 3."""
    case = dict(sizes=[1, 1, 0], rounds=1, steps=[1, 1, 0], lr=1.0)
    three = exact([1, 0], [0, 1], [0, 0])
    w = run("eve", *three, count_empty=True, q_mode="energy", r_mean="uniform", **case)[0]
    Q, R = 0.5 / 6, (5 / 9 + 5 / 9 + 2 / 9) / 18
    np.testing.assert_allclose(w, np.full(2, 0.5) * Q / (Q + R), rtol=1e-14)
    np.testing.assert_allclose(run("eve", *three, **case)[0], 0.25, rtol=1e-14)  # MS 8: G = .5


RNG = np.random.default_rng(7)
MANY = (RNG.uniform(0.5, 2, (5, 8)), RNG.normal(size=(5, 8)), RNG.normal(size=8))
PARTIAL = {"cohort": [[0, 3], [1, 2, 4], [0], [4, 3, 1]], "sizes": [4, 1, 7, 2, 3], "steps": [2, 5, 1, 3, 4]}
PROXY = (np.ones(8), np.zeros(8))
COUNTS = np.array([[3.0, 0], [1, 1], [0, 4], [2, 1], [1, 5]])

SAME = {  # two oracles that must agree; MS 14, ML 8.5
    "disco a=b=0": ("disco", {"pull": 0.0, "lift": 0.0, "classes": COUNTS}, "fedavg", {}),
    "lws tau=0": ("lws", {"low": 0.0, "high": 0.0}, "fedavg", {}),
    "law, no epochs": ("law", {"epochs": 0, "proxy": PROXY}, "fedavg", {}),
    "law, no proxy gradient": ("law", {"proxy": (np.zeros(8), np.zeros(8))}, "fedavg", {}),
    "law quad, no epochs": ("law", {"epochs": 0, "form": "quad", "proxy": PROXY}, "fedavg", {}),
    "law quad as released": ("law", {"epochs": 0, "form": "quad", "start": "uniform", "proxy": PROXY}, "uniform", {}),
    "awa lr=0, equal sizes": ("awa", {"awa_lr": 0.0, "sizes": None, "cohort": None}, "uniform", {"cohort": None}),
    "awa log lr=0, all": ("awa", {"awa_lr": 0.0, "init": "log", "cohort": None}, "fedavg", {"cohort": None}),
    "eve none": ("eve", {"predict": "none"}, "fedavg", {}),
    "trimmed nothing": ("robust", {"rule": "trimmed"}, "uniform", {}),
    "krum of all": ("robust", {"rule": "krum", "m": 9}, "uniform", {}),
    "cm unscaled 1": ("cm", {"form": "unscaled", "alpha": 1.0}, "fedavg", {}),
    "speed mix=0": ("speed", {"mix": 0.0}, "speed", {"rho": 0.0}),
    "speed, all": ("speed", {"cohort": None}, "fedspeed", {"cohort": None}),
    "gloss rho=0": ("gloss", {"rho": 0.0, "rho_local": 0.1, "sizes": None}, "fedspeed", {"sizes": None}),
    "gloss rho=0, alone": ("gloss", {"rho": 0.0, "sizes": None}, "dyn", {"sizes": None}),
    "gloss no rise": ("gloss", {"rho0": 0.1, "warm": 5}, "gloss", {}),
    "sol rho=0": ("sol", {"rho": 0.0}, "fedavg", {}),
    "avgm as adam": ("adam", {"tau": 1e9, "adam_lr": 1e9, "v0": "zero"}, "avgm", {}),
    "avgm as yogi": ("adam", {"tau": 1e9, "adam_lr": 1e9, "v0": "zero", "rule": "yogi"}, "avgm", {}),
    "avgm as adagrad": ("adam", {"tau": 1e9, "adam_lr": 1e9, "v0": "zero", "rule": "adagrad"}, "avgm", {}),
    "specgrad": ("filtered", {"r": 0.45}, "specgrad", {"r": 0.45}),
    "specgrad on all": ("filtered", {"r": 0.45, "mu": 0.1, "on": "all"}, "sgf_prox", {"r": 0.45}),  # ML 8.5.5
    "specgrad high, all": ("filtered", {"r": 1.0, "band": "high", "wd": 0.1}, "filtered", {"r": 1.0, "wd": 0.1}),
    "lap too wide": ("filtered", {"kind": "lap", "r": 0.1}, "fedavg", {}),
    "gauss too wide": ("filtered", {"kind": "gauss", "r": 0.3}, "fedavg", {}),
    "specpert": ("perturbed", {"r": 0.45}, "specpert", {"r": 0.45}),
    "gc": ("filtered", {"name": "gc", "shape": (4, 2)}, "gc", {"shape": (4, 2)}),
    "fft2 of a linear": ("filtered", {"kind": "fft2", "shape": (4, 2)}, "fedavg", {}),
    "fft2 = gc kernel": (
        "filtered", {"kind": "fft2", "shape": (2, 1, 2, 2)},
        "filtered", {"name": "gc", "per": "kernel", "shape": (2, 1, 2, 2)},
    ),
    "l2 unit of one": ("filtered", {"name": "l2", "form": "unit"}, "fedavg", {}),
    "l2 cap off": ("filtered", {"name": "l2", "form": "cap", "max": 1e9}, "fedavg", {}),
    "l2pert no-op": ("perturbed", {"name": "l2pert", "form": "cap", "max": 0.1}, "sam", {}),  # ML 6.1
    "l2pert = lower rho": (
        "perturbed", {"name": "l2pert", "form": "cap", "max": 0.05, "eps": 0.0}, "sam", {"rho": 0.05, "eps": 0.0},
    ),
    "coordclip off": ("perturbed", {"name": "coordclip", "c": 1e9}, "sam", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_same(name):
    one, options, two, others = SAME[name]
    left = run(one, *MANY, **{"rounds": 9, **PARTIAL, **options})
    right = run(two, *MANY, **{"rounds": 9, **PARTIAL, **others})
    np.testing.assert_allclose(left, right, rtol=0, atol=2e-8 if name.startswith("avgm") else 1e-12)


def test_scaffold_one():
    """Karimireddy's two options differ from round 2 on; option I too reaches the optimum (its c_i are exact there)."""
    one, two = run("scaffold", option="I"), run("scaffold")
    np.testing.assert_array_equal(one[0], two[0])
    assert np.abs(one[1] - two[1]).max() > 1e-4
    assert np.linalg.norm(run("scaffold", option="I", rounds=2000)[-1] - golden.OPTIMUM) < 1e-12


def test_scaffold_one_by_hand():
    """K = 1, by hand: every client steps along g_k - c_k + c with c_k its gradient at the model before."""
    w, c = golden.W0, np.zeros((2, 8))
    for expected in run("scaffold", option="I", steps=1):
        g = np.array([grad(golden.A[k], golden.B[k], w) for k in (0, 1)])
        new = w - golden.LR * (g - c + c.mean(axis=0)).mean(axis=0)
        w, c = new, g
        np.testing.assert_allclose(w, expected, rtol=0, atol=1e-14)


def test_unscaled_momentum():
    """Constant gradient g: D_t = g + (1 - alpha) D_{t-1}, 1 / alpha times FedCM's."""
    for oracle in ("cm", "mofedsam"):
        w = run(oracle, *flat([1], [1]), rounds=4, steps=[2, 6], sizes=[3, 1], alpha=0.3, form="unscaled")[:, 0]
        moved = -np.diff(w, prepend=0) / (0.1 * 3)
        np.testing.assert_allclose(moved, [(1 - 0.7**t) / 0.3 for t in (1, 2, 3, 4)], atol=1e-6)


def test_gloss_sums_and_warm_up():
    """1-D, one client, a = 1, b = 0, w = 1, one step of .1, beta 10: w1 = 1 - .1 + mean h = .8, P = .1.

    Round 2, rho .4, rho0 .2, warm 2: radius .3, w~ = 1.1; u = 1.1 - sigma, sigma = .01; Delta = -.109; sigma = .0209,
    w = .8 - .109 - .209. Constant radius .4: w~ = 1.2, Delta = -.119, sigma = .0219, w = .8 - .119 - .219.
    """
    one = (np.ones((1, 1)), np.zeros((1, 1)), np.ones(1))
    case = dict(rounds=2, steps=1, lr=0.1, rho=0.4, rho0=0.2)
    np.testing.assert_allclose(run("gloss", *one, warm=2, **case)[:, 0], (0.8, 0.482), rtol=1e-13)
    np.testing.assert_allclose(run("gloss", *one, **case)[:, 0], (0.8, 0.462), rtol=1e-13)
