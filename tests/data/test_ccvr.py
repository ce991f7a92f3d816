"""CCVR's formulas (methods-server.md 10.4) against NumPy."""

import numpy as np
import pytest
import torch

from holdfast.ccvr import Moments, Options, moments, pooled, retrained, virtual
from holdfast.errors import Refused

RNG = np.random.default_rng(0)
D, C = 5, 4
# Class 0 lies with everybody, class 1 with one sample at each client, class 2 once in all, class 3 nowhere.
LABELS = [np.array([0, 0, 1, 0]), np.array([1, 0, 2, 0, 0, 0]), np.array([1]), np.array([0])]
FEATURES = [RNG.normal(3.0, 2.0, (len(y), D)) for y in LABELS]


def server():
    told = [moments(torch.from_numpy(x), torch.from_numpy(y), C) for x, y in zip(FEATURES, LABELS, strict=True)]
    return pooled(told)


def of(label):
    return np.concatenate([x[y == label] for x, y in zip(FEATURES, LABELS, strict=True)])


def test_the_pooled_covariance_is_that_of_all_features():
    # MS 10.4, 'Test'. At clients with N_ck = 1 the covariance term is zero; class 1 has no other.
    m = server()
    assert m.count.tolist() == [8, 3, 1, 0]
    for label in (0, 1):
        assert np.abs(m.mean[label].numpy() - of(label).mean(0)).max() < 1e-10
        assert np.abs(m.covariance[label].numpy() - np.cov(of(label).T)).max() < 1e-10


def test_a_clients_covariance_is_unbiased():
    m = moments(torch.from_numpy(FEATURES[1]), torch.from_numpy(LABELS[1]), C)
    own = FEATURES[1][LABELS[1] == 0]
    assert np.abs(m.covariance[0].numpy() - np.cov(own.T)).max() < 1e-12
    assert m.covariance[1].abs().max() == 0 and m.mean[3].abs().max() == 0


def test_classes_below_two_samples_are_skipped():
    # MS 10.4: 'N_c < 2 -> skip class'.
    x, y = virtual(server(), 7, seed=0)
    assert y.tolist() == [0] * 7 + [1] * 7 and x.shape == (14, D) and x.isfinite().all()


def test_virtual_features_have_the_moments_of_their_class():
    # Class 1 has 3 samples in 5 dimensions, so its covariance has rank 2. 200,000 draws: within 5 sd, 5 sqrt(2/200,000)
    # = 1.6 % of a variance, here of the largest.
    m = server()
    x, y = virtual(m, 200_000, seed=1)
    for label in (0, 1):
        drawn, largest = x[y == label].numpy(), m.covariance[label].diagonal().max().item()
        assert np.abs(np.cov(drawn.T) - m.covariance[label].numpy()).max() < 0.016 * largest
        assert np.abs(drawn.mean(0) - m.mean[label].numpy()).max() < 5 * (largest / 200_000) ** 0.5
    assert np.linalg.matrix_rank(np.cov(x[y == 1].numpy().T), tol=1e-8) == 2


def test_same_seed_same_bits():
    m = server()
    (a, _), (b, _), (other, _) = virtual(m, 9, 0), virtual(m, 9, 0), virtual(m, 9, 1)
    assert torch.equal(a, b) and not torch.equal(a, other)


def test_one_step_of_the_retraining():
    # The gradient of the mean cross-entropy by hand: (softmax - onehot)^T x / n. One batch, so the order is no matter.
    x, y = virtual(server(), 3, seed=0)
    w, b = torch.randn(C, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.zeros(C).double()
    new = retrained([w, b], x, y, Options(samples=3, epochs=1, lr=0.5, batch=6), seed=0)
    g = (torch.softmax(x @ w.T + b, 1) - torch.nn.functional.one_hot(y, C)) / len(y)
    assert torch.allclose(new[0], w - 0.5 * g.T @ x, atol=1e-12) and torch.allclose(new[1], b - 0.5 * g.sum(0))
    assert len(retrained([w], x, y, Options(epochs=1), seed=0)) == 1  # a layer without a bias


def test_wrong_options_are_told_together():
    with pytest.raises(Refused) as caught:
        Options(samples=0, epochs=2.5, lr=float("nan"))  # pyright: ignore[reportArgumentType]
    assert all(word in str(caught.value) for word in ("samples=0", "epochs=2.5", "lr=nan"))


def test_pooling_one_client_changes_nothing():
    one = moments(torch.from_numpy(FEATURES[0]), torch.from_numpy(LABELS[0]), C)
    again = pooled([one])
    assert isinstance(again, Moments) and torch.allclose(again.covariance, one.covariance, atol=1e-12)
