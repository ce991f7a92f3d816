"""FedEve's drift settings as pure functions (specs/models-data-metrics.md B4, and rule P3 in B3)."""

import numpy as np
import pytest

from holdfast.data.dealing import Samples
from holdfast.data.dirichlet import dirichlet
from holdfast.data.plan import generator
from holdfast.data.redraw import Drift, class_wise, equal_parts, redrawn

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 10, 600)
# Clients of 1 to 97 samples, none twice, and one client of none.
HELD = [part.astype(np.int64) for part in np.split(RNG.permutation(600)[:400], [1, 30, 60, 160, 160, 257])]


def histogram(parts):
    return np.bincount(LABELS[np.concatenate(parts)], minlength=10).tolist()


@pytest.mark.parametrize("drift", [Drift("period"), Drift("client", 0.1), Drift("client", 5.0)])
def test_nothing_is_lost_or_doubled(drift):
    # B4: the pool of the sampled clients, dealt anew; so also the pooled label histogram is the same.
    parts = redrawn(drift, HELD, LABELS, 10, generator(0, "drift", 3))
    assert len(parts) == len(HELD)
    assert sorted(np.concatenate(parts)) == sorted(np.concatenate(HELD)) and histogram(parts) == histogram(HELD)


def test_a_sample_that_the_pool_holds_twice_stays_there_twice():
    # Rule 'recycled' (P5r) gives a sample to several clients.
    held = [np.array([1, 2, 2]), np.array([2, 7])]
    for parts in (equal_parts(held, generator(0, "drift")), class_wise(held, LABELS, 10, 0.1, generator(0, "drift"))):
        assert sorted(np.concatenate(parts)) == [1, 2, 2, 2, 7]


def test_period_parts_differ_by_one_sample_at_most():
    # B4, 'Test'.
    sizes = [len(part) for part in equal_parts(HELD, generator(0, "drift"))]
    assert max(sizes) - min(sizes) <= 1


def test_period_parts_are_shuffled():
    # Each of two clients holds one class only; of 200 samples a fair half is within 5 sd = 0.18 of one half.
    labels = np.repeat([0, 1], 200)
    parts = equal_parts([np.arange(200), np.arange(200, 400)], generator(0, "drift"))
    assert all(abs(labels[part].mean() - 0.5) < 0.18 for part in parts)


def test_client_parts_follow_dirichlet():
    # The share of a class that a part gets has mean 1/m and variance (1/m)(1 - 1/m)/(m alpha + 1), Dirichlet's; the
    # floor of the cuts moves a share of 10,000 samples by 1e-4 at most. 4000 shares: the mean of squares within 5 %.
    labels, m, alpha = np.repeat(np.arange(1000), 100), 4, 0.3
    held = np.array_split(np.arange(100_000), m)
    parts = class_wise(held, labels, 1000, alpha, generator(0, "drift"))
    shares = np.stack([np.bincount(labels[part], minlength=1000) for part in parts]) / 100
    wanted = (1 / m) * (1 - 1 / m) / (m * alpha + 1)
    assert abs(((shares - 1 / m) ** 2).mean() - wanted) < 0.05 * wanted


def test_client_parts_may_be_empty_and_keep_the_order_of_a_class():
    # P3: no minimum, no shuffling inside a class. One class and alpha 1e-3: all of it goes to one part.
    labels, held = np.zeros(40, dtype=np.int64), np.array_split(np.arange(40)[::-1], 4)
    parts = class_wise(held, labels, 1, 1e-3, generator(1, "drift"))
    assert sorted(len(part) for part in parts) == [0, 0, 0, 40]
    assert np.concatenate(parts).tolist() == list(range(39, -1, -1))


def test_client_parts_are_dealt_by_the_rule_of_the_base_partition():
    # B4: 're-split it by P3 with the same alpha'. The pool of clients that hold everything, in order, is the data set.
    held = np.array_split(np.arange(600), 8)
    parts = class_wise(held, LABELS, 10, 0.1, np.random.default_rng(5))
    options = {"alpha": 0.1, "clients": 8, "rule": "plain", "empty": "allow"}
    wanted = dirichlet(Samples(LABELS, 10), np.random.default_rng(5), **options).clients
    assert all(np.array_equal(a, b) for a, b in zip(parts, wanted, strict=True))


def test_a_round_of_the_papers_size():
    # B4: 10 of 3,400 clients, alpha .01, as many samples as FEMNIST. With an iid base the pool is like the data: 1,975
    # samples of 62 classes, whose squared distance to equal shares is (1 - 1/62) / 1975 in the mean, and far below ten
    # times that; its parts hold a few classes each. With a P3 base and 'period', parts are alike.
    labels = np.repeat(np.arange(62), 671_585 // 62)
    base = np.array_split(np.random.default_rng(0).permutation(len(labels)), 3400)[:10]
    parts = redrawn(Drift("client", 0.01), base, labels, 62, generator(0, "drift"))
    counts = np.stack([np.bincount(labels[part], minlength=62) for part in parts])
    pooled = counts.sum(axis=0) / counts.sum()
    assert ((pooled - 1 / 62) ** 2).sum() < 10 * (1 - 1 / 62) / 1975
    assert (counts > 0).sum(axis=1).mean() < 20  # 62 classes to ten parts, nearly each whole to one
    skewed = dirichlet(
        Samples(labels, 62), np.random.default_rng(0), alpha=0.01, clients=3400, rule="plain", empty="allow"
    ).clients[:10]
    sizes = [len(part) for part in redrawn(Drift("period"), list(skewed), labels, 62, generator(0, "drift"))]
    assert max(sizes) - min(sizes) <= 1 and np.ptp([len(rows) for rows in skewed]) > 100


def test_both_is_plain():
    assert redrawn(Drift(), HELD, LABELS, 10, generator(0, "drift")) is HELD


def test_same_counters_same_parts():
    # decisions.md 7: from counters, so from nothing else.
    for drift in (Drift("period"), Drift("client", 0.1)):
        a, b, later, other = (
            np.concatenate(redrawn(drift, HELD, LABELS, 10, generator(seed, "drift", t))).tolist()
            for seed, t in ((0, 3), (0, 3), (0, 4), (1, 3))
        )
        assert a == b and a != later and a != other
