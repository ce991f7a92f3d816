"""Splits against what the specs measured (models-data-metrics B3, methods-local 3.3), over seeds.

The specs' figures are of a few draws; here the mean of many is held to them, and the spread is said. CIFAR's labels are
balanced classes, so they are made here; no rule looks at anything else.
"""

from typing import Any

import numpy as np
import pytest
from shared import needs_shared, unpacked

from holdfast.data.dealing import Samples
from holdfast.data.dirichlet import try_minimum
from holdfast.data.splits import Split, make

CIFAR10, CIFAR100, TINY = ((np.repeat(np.arange(c), n // c), c) for c, n in ((10, 50_000), (100, 50_000), (200, 10**5)))
LEAST = {"classwise": {"empty": "allow"}, "plain": {"empty": "allow"}}


def rows(data: tuple[np.ndarray, int], seeds: int, rule: str, **options: Any) -> dict[str, np.ndarray]:
    """Every figure of the summary, one value a seed."""
    found = []
    for seed in range(seeds):
        made = make("dirichlet", {"rule": rule, **LEAST.get(rule, {}), **options}, Samples(*data), seed, "text")
        found.append(made.summary(*data))
    return {key: np.array([row[key] for row in found]) for key in found[0]}


def test_recycled_at_a_tenth():
    # 3.3, split A on CIFAR-10 at alpha .1, N 100: 5.0-5.2 distinct classes a client (issue 5: mean over 20 seeds within
    # 4.7-5.3), 44.8-46.2 k distinct images, class totals 3.2-6.8 k. A single draw has a standard deviation of 1,000
    # images and .15 classes; 20 draws range over 2.2-4.0 k and 5.9-8.3 k in the extreme class totals.
    found = rows(CIFAR10, 20, "recycled", alpha=0.1)
    assert (found["size_min"] == 500).all() and (found["size_max"] == 500).all() and (found["clients"] == 100).all()
    assert 4.7 < found["classes_mean"].mean() < 5.3
    assert 44_800 < found["distinct"].mean() < 46_200
    assert found["distinct"].min() > 42_000 and found["distinct"].max() < 49_000
    assert found["class_min"].mean() == pytest.approx(3200, rel=0.1)
    assert found["class_max"].mean() == pytest.approx(6700, rel=0.1)
    # addenda A1.iv: H -> (1/M)(1 - 1/M)/(M alpha + 1) = .045 for Dirichlet shares, here of finite samples.
    assert found["heterogeneity"].mean() == pytest.approx(0.045, rel=0.1)


@pytest.mark.parametrize(
    ("data", "alpha", "unused", "classes"),
    [
        # B3: 9, 5, 12, 12 % unused; 3.3: 5.0-5.2, 9.3-9.5, 33 distinct classes and, at alpha .6, 74. The other figures
        # of the table are not in the specs: CIFAR-100 at .6 holds 47 k distinct, so 6 % unused.
        (CIFAR10, 0.1, 0.09, 5.0),
        (CIFAR10, 0.6, 0.05, 9.4),
        (CIFAR100, 0.1, 0.12, 33),
        (CIFAR100, 0.6, 0.06, 74),
        (TINY, 0.1, 0.12, None),
    ],
)
def test_recycled_leaves_samples_unused_and_duplicates_as_many(data, alpha, unused, classes):
    found = rows(data, 10, "recycled", alpha=alpha)
    assert (found["unused"] / len(data[0])).mean() == pytest.approx(unused, abs=0.01)
    assert ((found["size_mean"] * found["clients"] - found["distinct"]) == found["unused"]).all()
    assert classes is None or found["classes_mean"].mean() == pytest.approx(classes, rel=0.03)


def test_classwise():
    # 3.3, split C on CIFAR-10 at alpha .1, N 100, over 50 draws: smallest client about 5, largest about 2400, an empty
    # one in ~18 % of draws (two standard deviations of the difference of 50 and 100 draws are 13 %), sizes with sd 469,
    # so with a coefficient of variation of 469 / 500.
    found = rows(CIFAR10, 100, "classwise", alpha=0.1)
    assert 0.05 <= (found["empty"] > 0).mean() <= 0.31
    assert 3.5 < found["size_min"].mean() < 6.5 and found["size_max"].mean() == pytest.approx(2400, rel=0.1)
    assert found["size_cv"].mean() == pytest.approx(469 / 500, rel=0.05)
    # CIFAR-100: sizes about 200-950.
    found = rows(CIFAR100, 20, "classwise", alpha=0.1)
    assert found["size_min"].mean() == pytest.approx(200, rel=0.1)
    assert found["size_max"].mean() == pytest.approx(950, rel=0.1)


@pytest.mark.parametrize(
    ("data", "clients", "alpha", "cv"),
    [(CIFAR10, 100, 0.1, 0.80), (CIFAR10, 100, 0.6, 0.29), (CIFAR100, 20, 0.01, 0.17)],
)
def test_minimum_compresses_sizes(data, clients, alpha, cv):
    # B3: 'P1 compresses sizes', the coefficient of variation; 20 draws range over .65-.99, .24-.32 and .11-.24.
    found = rows(data, 20, "minimum", alpha=alpha, clients=clients)
    assert found["size_cv"].mean() == pytest.approx(cv, rel=0.06) and found["size_min"].min() >= 10


def literal_minimum(rng: np.random.RandomState, sizes: list[int], alpha: float, clients: int) -> float:
    """One draw of P1's text with NumPy's own Dirichlet: the smallest client, 0 for a draw without mass."""
    held = np.zeros(clients)
    for size in sizes:
        shares = rng.dirichlet([alpha] * clients) * (held < sum(sizes) / clients)
        if shares.sum() == 0:
            return 0
        cuts = (np.cumsum(shares / shares.sum()) * size).astype(int)[:-1]
        held += np.diff(np.concatenate([[0], cuts, [size]]))
    return held.min()


@pytest.mark.parametrize(
    ("sizes", "clients", "alpha", "rate"),
    [([5000] * 10, 100, 0.1, 0.22), ([5000] * 10, 10, 0.01, 0.20), ([500] * 10, 10, 0.01, 0.11)],
)
def test_minimum_is_accepted_as_often_as_its_text(sizes, clients, alpha, rate):
    # B3 says 'about 1 draw in 4', '1 in 7', '1 in 12' for CIFAR-10 (K 100, then 10) and STL-10. 4,000 draws of the text
    # of P1 give .23, .20 and .11: the first agrees, the others are 1 in 5 and 1 in 9. So the text is what is held to:
    # 1,000 draws each, within four standard errors of the difference, and of the 4,000 draws.
    rng, literal = np.random.default_rng(0), np.random.RandomState(1)
    drawn = [try_minimum(sizes, rng, alpha, clients) for _ in range(1000)]
    ours = np.mean([counts is not None and counts.sum(axis=1).min() >= 10 for counts in drawn])
    theirs = np.mean([literal_minimum(literal, sizes, alpha, clients) >= 10 for _ in range(1000)])
    error = np.sqrt(rate * (1 - rate) / 1000)
    assert abs(ours - theirs) < 4 * np.sqrt(2) * error and abs(ours - rate) < 4 * error


@pytest.mark.parametrize(("data", "clients", "alpha"), [(CIFAR10, 10, 0.1), (CIFAR10, 100, 0.6), (CIFAR100, 20, 0.01)])
def test_minimum_is_nearly_always_accepted_elsewhere(data, clients, alpha):
    sizes, rng = np.bincount(data[0]).tolist(), np.random.default_rng(0)  # B3: 'all other seed settings >= 0.9'
    drawn = [try_minimum(sizes, rng, alpha, clients) for _ in range(100)]
    assert sum(counts is not None and counts.sum(axis=1).min() >= 10 for counts in drawn) >= 90


FEMNIST = np.repeat(np.arange(62), 671_585 // 62), 62
PLAIN = [(1.0, 0, 305, 2.519e-4), (0.1, 0, 590, 2.204e-3), (0.01, 76, 2570, 9.796e-3)]


@pytest.mark.parametrize(("alpha", "empty", "largest", "heterogeneity"), PLAIN)
def test_plain_on_as_many_samples_as_femnist(alpha, empty, largest, heterogeneity):
    # B3, P3 with 3,400 clients: empty 0, 0, about 76; largest about 305, 590, 2570 (ten draws of ours: 296-321, 556-662
    # and 2,011-3,015). The specs do not say the class sizes; these figures come out where all 62 are equal.
    # Addenda A1.iv gives H for M = 62.
    found = rows(FEMNIST, 3, "plain", alpha=alpha, clients=3400)
    assert found["empty"].mean() == pytest.approx(empty, abs=0.2 * empty)
    assert found["size_max"].mean() == pytest.approx(largest, rel=0.05 if alpha > 0.01 else 0.25)
    assert found["heterogeneity"].mean() == pytest.approx(heterogeneity, rel=0.03)
    assert (found["unused"] == 0).all()


@pytest.mark.parametrize(("alpha", "least", "most"), [(1.0, 0, 0), (0.1, 0, 0), (0.01, 1, 4)])
def test_plain_on_cifar100(alpha, least, most):
    # B3, P3 with K = 500: 0, 0, about 2 empty clients; 50 draws of ours: 0 to 7, mean 2.9.
    assert least <= rows(CIFAR100, 20, "plain", alpha=alpha, clients=500)["empty"].mean() <= most


@needs_shared
def test_plain_with_the_classes_of_real_writers():
    # What real class sizes change: digits are two thirds of the sample of LEAF's writers in ../shared/data. Its shares
    # scaled to 671,585 samples, ten draws at alpha .01: 104 empty clients (84-118), the largest with 4,400-7,900.
    sizes = np.bincount(unpacked("femnist_leaf_sample")["y"], minlength=62)
    labels = np.repeat(np.arange(62), sizes * 671_585 // sizes.sum())
    found = rows((labels, 62), 3, "plain", alpha=0.01, clients=3400)
    assert 84 <= found["empty"].mean() <= 124 and 4000 < found["size_max"].mean() < 8000


def literal_client_wise(labels, alpha, clients, refill, seed):
    """The loop of methods-local 3.3 A and B, typed in as it stands there: nothing renormalised, nothing cached."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(labels))
    pools = [order[labels[order] == c] for c in range(10)]
    left, quota = [len(pool) for pool in pools], [len(labels) // clients] * clients
    cumulative = np.cumsum(rng.dirichlet([alpha] * 10, clients), axis=1)
    dealt = [[] for _ in range(clients)]
    while sum(quota):
        client = rng.randint(clients)
        if quota[client] == 0:
            continue
        while True:
            label = int(np.argmax(rng.uniform() <= cumulative[client]))
            if left[label] > 0:
                break
            left[label] = len(pools[label]) if refill else 0
        quota[client] -= 1
        left[label] -= 1
        dealt[client].append(pools[label][left[label]])
    return Split("literal", tuple(np.array(indices) for indices in dealt), seed)


@pytest.mark.parametrize(("rule", "alpha"), [("balanced", 2.0), ("recycled", 0.5)])
def test_client_wise_rules_are_distributed_as_the_literal_loop(rule, alpha):
    # Other random numbers, so equal in distribution only: the means of 60 draws within four standard errors.
    # The literal balanced loop takes minutes below alpha .5, where the classes left have hardly any mass.
    labels, options = np.repeat(np.arange(10), 60), {"alpha": alpha, "clients": 12, "rule": rule}
    ours = [make("dirichlet", options, Samples(labels, 10), s, "t").summary(labels, 10) for s in range(60)]
    literal = [literal_client_wise(labels, alpha, 12, rule == "recycled", s).summary(labels, 10) for s in range(60)]
    for key in ("classes_mean", "heterogeneity", "distinct"):
        mine, theirs = ([row[key] for row in rows] for rows in (ours, literal))
        assert abs(np.mean(mine) - np.mean(theirs)) <= 4 * np.sqrt((np.var(mine) + np.var(theirs)) / 60), key
