"""What the specs say of the loss terms in numbers: MS 9, 10.1, 10.3, 13, AD A11; library and oracle side by side."""

import _net
import numpy as np
import pytest
from _twin import added, load

V, V1, U = (
    "univar(mu=0.0, lam=1.0)", "univar(mu=0.0, lam=1.0, estimator='unbiased')", "uv(mu=0.0, lam=1.0)",
)  # fmt: skip
HE, PAIRS, SPREAD = "univar(mu=1.0, lam=0.0)", "univar(mu=1.0, lam=0.0, self_pairs=True)", "uv(mu=1.0, lam=0.0)"
RHO = "decorr(beta=1.0)"
DRAW = np.random.default_rng(5)
BEGIN = DRAW.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers_in_any_order():
    DRAW.bit_generator.state = BEGIN


def oracle(text):
    """The term of the oracle as a function of logits and features."""
    univar, uv = load("univar"), load("uv")
    return {
        V: lambda s, f: univar.variance(s), V1: lambda s, f: univar.variance(s, "unbiased"),
        U: lambda s, f: uv.deviation(s), HE: lambda s, f: univar.energy(f),
        PAIRS: lambda s, f: univar.energy(f, self_pairs=True), SPREAD: lambda s, f: uv.uniformity(f),
        RHO: lambda s, f: load("decorr").correlation(f),
    }[text]  # fmt: skip


def value(text, logits, features=None, **more):
    """The library's, which must be the oracle's, with finite gradients."""
    s = np.asarray(logits, dtype=float)
    f = np.ones((len(s), 2)) if features is None else np.asarray(features, dtype=float)
    got, ds, df = added(text, s, f, **more)
    assert np.isfinite(ds).all() and np.isfinite(df).all()
    np.testing.assert_allclose(got, oracle(text)(s, f), rtol=1e-9, atol=1e-12)
    return got


def perfect(labels, classes):
    """Logits whose softmax is exactly one-hot."""
    return 1000 * np.eye(classes)[np.asarray(labels)]


def of_features(text, features):
    return value(text, np.zeros((len(features), 3)), features)


# --- classifier variance


@pytest.mark.parametrize(
    "D, biased, unbiased, feduv",
    [(7, 0.122449, 0.142857, 0.377964), (10, 0.09, 0.1, 0.316228), (100, 0.0099, 0.01, 0.1),
     (200, 0.004975, 0.005, 0.070711)],
)  # fmt: skip
def test_table_of_c(D, biased, unbiased, feduv):
    """MS 9.1, 9.3: uniform predictions leave c; so do samples that are all predicted one class."""
    for text, c, exact in ((V, biased, (D - 1) / D**2), (V1, unbiased, 1 / D), (U, feduv, D**-0.5)):
        for logits in (np.zeros((6, D)), perfect([2] * 6, D)):
            got = value(text, logits)
            assert abs(got - exact) < 1e-12 and abs(got - c) < 0.5e-6 + 1e-12


@pytest.mark.parametrize("D", [3, 10])
def test_perfect_predictions(D):
    """MS 9.1, 9.3: n = D one-hot rows leave nothing; n = 2D only with the unbiased estimators."""
    once, twice = perfect(np.arange(D), D), perfect(np.tile(np.arange(D), 2), D)
    for text in (V, V1, U):
        assert abs(value(text, once)) < 1e-12
    assert abs(value(V, twice)) < 1e-12
    assert abs(value(V1, twice) - 1 / (D * (2 * D - 1))) < 1e-12
    n = 5 * D
    many = value(V1, perfect(np.tile(np.arange(D), 5), D))
    assert abs(many - (1 / D - n / (n - 1) * (D - 1) / D**2)) < 1e-12


def test_classes_that_are_not_in_the_batch():
    """AD A11: q = 10 of D = 100 classes leave .9 c = .00891; IID batches of 64 leave .525 c."""
    assert abs(value(V, perfect(np.repeat(np.arange(10), 10), 100)) - 0.00891) < 1e-12
    labels = DRAW.integers(100, size=64)
    share = 1 - len(set(labels)) / 100
    assert abs(value(V, perfect(labels, 100)) - 0.0099 * share) < 1e-12
    assert abs(0.99**64 - 0.525) < 0.001  # what `share` is on average


def test_default_strength():
    """MS 9.1: lam = D/4, so lam c is (D-1)/(4D) for UniVarFL and sqrt(D)/4 for FedUV; mu = .5."""
    for D in (3, 10):
        s, f = np.zeros((6, D)), DRAW.normal(size=(6, 4))
        assert abs(added("univar(mu=0.0)", s, f)[0] - (D - 1) / (4 * D)) < 1e-12
        assert abs(added("uv(mu=0.0)", s, f)[0] - D**0.5 / 4) < 1e-12
        assert abs(added("univar(lam=0.0)", s, f)[0] - 0.5 * value(HE, s, f)) < 1e-12
        assert abs(added("uv(lam=0.0)", s, f)[0] - 0.5 * value(SPREAD, s, f)) < 1e-12


def test_a_perfect_client_of_one_class_feels_little():
    """MS 9.1: at exactly one-hot predictions the gradient vanishes by saturation."""
    for text in (V, V1, U):
        _, ds, _ = added(text, perfect([1] * 6, 4))
        assert not ds.any()


# --- hyperspherical energy and uniformity


def test_values_of_the_energy():
    """MS 9.3, eps = .01; the lengths of the features do not matter."""
    antipodal = np.array([[3.0, 4.0], [-0.3, -0.4]])
    simplex = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * np.array([[1.0], [2], [0.5], [7]])
    for features, printed in ((antipodal, 0.248756), (3 * np.eye(4), 0.742574), (simplex, 0.558313)):
        assert abs(of_features(HE, features) - printed) < 0.5e-6 + 1e-9
    assert abs(of_features(PAIRS, antipodal) - of_features(HE, antipodal) - 50.0) < 1e-9


def test_self_pairs_are_a_constant():
    """MS 9.3: they change the value by 1/(n eps), and not the gradient."""
    features = DRAW.normal(size=(7, 5))
    for eps in (0.01, 0.2):
        with_, without = (
            added(f"univar(mu=1.0, lam=0.0, eps={eps}, self_pairs={on})", np.zeros((7, 3)), features)
            for on in (True, False)
        )
        assert abs(with_[0] - without[0] - 1 / (7 * eps)) < 1e-9
        np.testing.assert_allclose(with_[2], without[2], rtol=0, atol=1e-12)


def test_identical_features():
    """MS 9.3: n(n-1)/(n^2 eps), finite, large; MS 9.2: the median of no distance gives 0."""
    features = np.tile([[1.0, -2.0, 0.5]], (5, 1))
    assert abs(of_features(HE, features) - 20 / (25 * 0.01)) < 1e-9
    assert of_features(SPREAD, features) == 0
    assert abs(of_features(RHO, features)) < 1e-12  # MS 10.1: constant columns


def test_dead_rows():
    """MS 9.2: ||f|| = 0 -> z = 0, cos = 0."""
    features = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    assert abs(of_features(HE, features) - 6 / (9 * 1.01)) < 1e-9


def test_uniformity_of_feduv():
    """MS 9.2, by hand: squared distances 1, 4, 9 of points on a line; their median, 4, is the bandwidth."""
    points = np.array([[0.0], [1.0], [3.0]]) @ np.array([[0.6, 0.8]])
    assert abs(of_features(SPREAD, points) - np.exp(-np.array([1, 4, 9]) / 4).mean()) < 1e-12
    twins = np.repeat(points[:2], 2, 0)  # two pairs at 0, which do not count for the median
    assert abs(of_features(SPREAD, twins) - (2 + 4 * np.exp(-1)) / 6) < 1e-12


# --- decorrelation


def test_values_of_the_decorrelation():
    """MS 10.1: perfectly correlated columns (n-1)^2/n, also for n = 2; n = 1 -> 0; independent ones about 1."""
    for n in (2, 3, 7, 64):
        column = DRAW.normal(size=(n, 1))
        assert abs(of_features(RHO, column * np.array([[1.0, -2.0, 5.0, 0.5]])) / ((n - 1) ** 2 / n) - 1) < 1e-5
    assert of_features(RHO, DRAW.normal(size=(1, 4))) == 0
    assert abs(of_features(RHO, DRAW.normal(size=(500, 20))) - 1) < 0.15


def test_decorrelation_is_a_mean_squared_correlation():
    """MS 10.1: ((n-1)^2 / n) mean_{a != b} rho_ab^2."""
    features = DRAW.normal(size=(9, 4))
    rho = np.asarray(np.corrcoef(features.T))[~np.eye(4, dtype=bool)]
    assert abs(of_features(RHO, features) / (64 / 9 * np.square(rho).mean()) - 1) < 1e-6


def test_a_constant_column():
    """MS 10.1: fine, Xh = 0 there."""
    features = DRAW.normal(size=(6, 3)) * np.array([1, 0, 1]) + np.array([0, 2, 0])
    rho = np.corrcoef(features[:, 0], features[:, 2])[0, 1]
    assert abs(of_features(RHO, features) / (25 / 6 * rho**2 / 3) - 1) < 1e-6


# --- gradients


@pytest.mark.parametrize("n", [2, 4, 6, 7])
@pytest.mark.parametrize("text", [V, V1, U, HE, PAIRS, SPREAD, RHO])
def test_gradients(text, n):
    """MS 9.3: both terms against finite differences of the library, and against the complex step of the oracle."""
    s, f = DRAW.normal(size=(n, 4)), DRAW.normal(size=(n, 3))
    cut, term = s.size, oracle(text)

    def joint(v):
        return term(v[:cut].reshape(s.shape), v[cut:].reshape(f.shape)) + 0j

    point = np.concatenate([s.ravel(), f.ravel()])
    y = s.argmax(1)
    _, total, df = added(text, s, f, y)
    ds = total - added("fedavg", s, f, y)[1]
    got = np.concatenate([ds.ravel(), df.ravel()])
    np.testing.assert_allclose(got, _net.gradient(joint, point), rtol=1e-9, atol=1e-12 * max(1, np.abs(got).max()))
    for _ in range(3):
        v = DRAW.normal(size=len(point))
        up, down = (
            added(text, p[:cut].reshape(s.shape), p[cut:].reshape(f.shape), y)[0]
            for p in (point + 1e-5 * v, point - 1e-5 * v)
        )
        assert abs((up - down) / 2e-5 - got @ v) < 1e-6 * max(1, np.abs(got).max())


# --- FedLC


def test_calibrated_loss_is_the_total():
    """AD B6: the sum is CE(q), q_c = s_c - tau n_c^(-1/4); value and gradient."""
    s, y, n = DRAW.normal(size=(5, 4)), np.array([0, 2, 2, 3, 0]), np.array([16, 0, 1, 81])
    q = np.exp(s[:, [0, 2, 3]] - 0.7 * np.array([1 / 2, 1, 1 / 3]))
    want = -np.log(q[range(5), [0, 1, 1, 2, 0]] / q.sum(1)).mean()
    got, ds, _ = added("lc(tau=0.7)", s, y=y, classes=n)
    assert abs(got + _net.cross_entropy(s, y) - want) < 1e-12

    def total(v):
        return load("lc").calibrated(v.reshape(s.shape), y, n, 0.7)

    assert abs(total(s.ravel()) - want) < 1e-12
    np.testing.assert_allclose(ds.ravel(), _net.gradient(total, s.ravel()), rtol=1e-9, atol=1e-12)
    assert not ds[:, 1].any()  # MS 10.3: an absent class has gradient 0, exactly


@pytest.mark.parametrize("tau", [0.1, 1.0, 50.0])
def test_one_class_has_no_loss(tau):
    """MS 10.3: a client of one class: loss identically 0, no gradient."""
    s, y = DRAW.normal(size=(5, 3)), np.full(5, 2)
    got, ds, _ = added(f"lc(tau={tau})", s, y=y, classes=[0, 0, 9])
    assert abs(got + _net.cross_entropy(s, y)) < 1e-12
    assert np.abs(ds).max() < 1e-15 and not ds[:, :2].any()


def test_equal_counts_have_no_effect():
    """MS 10.3, ML 5.14: also with counts far above and below one another's batch."""
    s, y = DRAW.normal(size=(5, 3)), np.array([0, 1, 2, 1, 0])
    assert abs(added("lc(tau=3.0)", s, y=y, classes=[7, 7, 7])[0]) < 1e-12
    assert abs(added("lc(tau=3.0)", s, y=y, classes=[7, 7, 8])[0]) > 1e-3
    assert abs(added("lc(tau=0.0)", s, y=y, classes=[7, 7, 1])[0]) < 1e-12


# --- edge cases


@pytest.mark.parametrize("text", [V, V1, U, HE, SPREAD, RHO])
def test_a_batch_of_one_sample(text):
    """MS 13: variance, pairwise and decorrelation terms return 0, and pull nowhere."""
    s, f = DRAW.normal(size=(1, 3)), DRAW.normal(size=(1, 4))
    assert value(text, s, f, y=[1]) == 0
    _, ds, df = added(text, s, f, y=[1])
    np.testing.assert_allclose(ds, added("fedavg", s, f, y=[1])[1], rtol=0, atol=1e-15)
    assert not df.any()
