"""Splits: every rule's promise, the published statistics, seeds, what is refused."""

from typing import Any

import numpy as np
import pytest

from holdfast.data.client_wise import log_shares
from holdfast.data.dealing import Samples
from holdfast.data.splits import Split, make
from holdfast.errors import Refused

RULES = [
    ("iid", {}),
    ("dirichlet", {"alpha": 0.5, "rule": "balanced"}),
    ("dirichlet", {"alpha": 0.5, "rule": "recycled"}),
    ("dirichlet", {"alpha": 0.5, "rule": "classwise"}),
    ("dirichlet", {"alpha": 0.5, "rule": "minimum"}),
    ("dirichlet", {"alpha": 0.5, "rule": "plain"}),
    ("dirichlet", {"alpha": 0.5, "rule": "minimum", "min_size": "classes"}),
    ("classes", {"k": 2}),
    ("shards", {"k": 3}),
    ("quantity", {"alpha": 2.0}),
]
LABELS = np.random.default_rng(0).integers(0, 10, 4003)  # uneven classes, in no order


def split(name: str, options: dict[str, Any], labels=LABELS, classes=10, seed=0):
    return make(name, options, Samples(labels, classes), seed, "text")


def refused(name, options, labels=LABELS, classes=10, seed=0):
    with pytest.raises(Refused) as caught:
        split(name, options, labels, classes, seed)
    return str(caught.value)


@pytest.mark.parametrize(("name", "options"), RULES)
def test_every_index_once(name, options):
    # specs/models-data-metrics.md B3, 'Tests'; balanced gives floor(n/N) each and leaves the rest out.
    dealt = split(name, {**options, "clients": 20}).clients
    sizes, all_indices = [len(c) for c in dealt], np.concatenate(dealt)
    assert len(dealt) == 20 and all_indices.dtype == np.int64 and min(sizes) > 0
    assert all_indices.min() >= 0 and all_indices.max() < 4003
    if options.get("rule") in ("balanced", "recycled"):
        assert sizes == [200] * 20
    if options.get("rule") == "balanced":
        assert len(np.unique(all_indices)) == 4000
    elif options.get("rule") == "recycled":
        assert len(np.unique(all_indices)) < 4000
    else:
        assert np.array_equal(np.sort(all_indices), np.arange(4003))
    if name == "iid":
        assert max(sizes) - min(sizes) <= 1


def test_classes_rule_gives_each_client_its_own_class_and_k_in_all():
    counts = split("classes", {"k": 3, "clients": 25}).counts(LABELS, 10)
    assert ((counts > 0).sum(axis=1) == 3).all()
    assert all(counts[i, i % 10] > 0 for i in range(25))
    for column in counts.T:  # a class is split evenly among its holders
        assert np.ptp(column[column > 0]) <= 1


def test_recycled_classes_are_k_a_client_in_equal_shares():
    # methods-local 3.3: 'c classes per client with equal probability 1/c, same recycling loop'. 400 samples a client:
    # each of two shares is a half within five standard deviations, 5 * .5 / sqrt(400) = .125. Ten clients on ten
    # classes of 400: some class has more than one holder, so samples repeat.
    counts = split("classes", {"k": 2, "clients": 10, "recycled": True}).counts(LABELS, 10)
    assert (counts.sum(axis=1) == 400).all() and ((counts > 0).sum(axis=1) == 2).all()
    assert np.abs(counts[counts > 0] / 400 - 0.5).max() < 0.125
    assert split("classes", {"k": 2, "clients": 10, "recycled": True}).summary(LABELS, 10)["distinct"] < 4000
    assert "recycled=1 is unknown" in refused("classes", {"k": 2, "recycled": 1})


@pytest.mark.parametrize("rule", ["balanced", "recycled"])
def test_log_normal_sizes(rule):
    # FedDyn's unbalanced option: log sizes with standard deviation sigma; 400 clients of 100 samples in the mean, so
    # rounding hides nothing: within four standard errors, 4 * .3 / sqrt(800) = .042.
    labels = np.tile(np.arange(10), 4000)
    made = split("dirichlet", {"alpha": 1.0, "clients": 400, "rule": rule, "sigma": 0.3}, labels)
    sizes = np.array([len(rows) for rows in made.clients])
    assert sizes.sum() == 40_000 and np.std(np.log(sizes)) == pytest.approx(0.3, abs=0.042)
    if rule == "balanced":
        assert len(np.unique(np.concatenate(made.clients))) == 40_000
    assert "sigma=0.3 means nothing with rule='plain'" in refused(
        "dirichlet", {"alpha": 1, "rule": "plain", "sigma": 0.3}
    )


def test_shards_give_few_classes_and_equal_sizes():
    # P8: 40 clients of 2 shards, 80 shards of 50 or 51 samples sorted by label. Nine borders between ten classes can
    # mix at most nine shards, each adding one class.
    counts = split("shards", {"k": 2, "clients": 40}).counts(LABELS, 10)
    assert set(counts.sum(axis=1)) <= {100, 101, 102} and (counts > 0).sum() <= 80 + 9
    assert "take k=1 or clients=1334 at most" in refused("shards", {"k": 3, "clients": 4003})  # 4003 // 3


@pytest.mark.parametrize(("classes", "clients", "each"), [(100, 20, {5}), (200, 20, {10}), (10, 4, {2, 3})])
def test_class_split_is_disjoint(classes, clients, each):
    # B3, P6: 20 clients, 5 classes each of CIFAR-100 and 10 of Tiny-ImageNet; all samples of a class at one client.
    labels, tests = np.repeat(np.arange(classes), 6), np.tile(np.arange(classes), 2)
    made = make("class_split", {"clients": clients}, Samples(labels, classes, test_labels=tests), 0, "t")
    counts = made.counts(labels, classes)
    assert set((counts > 0).sum(axis=1)) == each and ((counts > 0).sum(axis=0) == 1).all()
    assert np.array_equal(np.sort(np.concatenate(made.clients)), np.arange(len(labels)))
    # Its own test rows are all those of its classes.
    assert np.array_equal(np.sort(np.concatenate(made.tests)), np.arange(len(tests))) and made.tests_from == "test"
    assert all(set(tests[t]) == set(labels[c]) for t, c in zip(made.tests, made.clients, strict=True))
    assert f"take {classes} or fewer" in refused("class_split", {"clients": classes + 1}, labels, classes)


def test_plain_cuts_in_stored_order_and_deals_the_test_samples_too():
    # P3: 'floor cuts, no shuffling inside the class; the test set is partitioned too, by an independent draw'.
    samples = Samples(LABELS, 10, test_labels=LABELS[:3000])
    made = make("dirichlet", {"alpha": 0.3, "clients": 20, "rule": "plain", "empty": "allow"}, samples, 4, "t")
    for label in range(10):
        pieces = [rows[LABELS[rows] == label] for rows in made.clients]
        assert np.array_equal(np.concatenate(pieces), np.flatnonzero(label == LABELS))
    assert np.array_equal(np.sort(np.concatenate(made.tests)), np.arange(3000)) and len(made.tests) == 20
    own, test = (np.stack([np.bincount(LABELS[r], minlength=10) for r in part]) for part in (made.clients, made.tests))
    # Independent draws: the clients' shares of a class in the two parts are uncorrelated; 200 pairs, sd 1/sqrt(200).
    assert abs(np.corrcoef(own.ravel(), test.ravel())[0, 1]) < 5 / np.sqrt(200)


def test_quantity_skews_sizes_only():
    # NIID-Bench: sizes by Dirichlet(alpha), so their variance is (1/N)(1-1/N)/(N alpha + 1) of n^2, where the smallest
    # of 10 is hardly ever rejected; classes as in all data: 5 sd of a share of .1 of 1,000 samples or more are .05.
    labels, sizes = np.tile(np.arange(10), 5000), []
    for seed in range(200):
        counts = split("quantity", {"alpha": 2.0, "clients": 10}, labels, seed=seed).counts(labels, 10)
        large = counts[counts.sum(axis=1) > 1000]
        assert np.abs(large / large.sum(axis=1, keepdims=True) - 0.1).max() < 0.05
        assert counts.sum() == 50_000 and counts.sum(axis=1).min() >= 10
        sizes.append(counts.sum(axis=1) / 50_000)
    assert np.var(sizes) == pytest.approx(0.1 * 0.9 / 21, rel=0.15)


def test_minimum_rule_keeps_its_promise():
    assert split("dirichlet", {"alpha": 0.1, "clients": 30, "rule": "minimum"}).summary(LABELS, 10)["size_min"] >= 10
    options = {"alpha": 0.5, "clients": 30, "rule": "minimum", "min_size": 60}
    assert split("dirichlet", options).summary(LABELS, 10)["size_min"] >= 60
    options = {"alpha": 0.1, "clients": 6, "rule": "minimum", "min_size": "classes"}  # P2: FedLab's, 62 of 62 classes
    labels = np.tile(np.arange(62), 65)
    assert split("dirichlet", options, labels, 62).summary(labels, 62)["size_min"] >= 62


@pytest.mark.parametrize("rule", ["balanced", "recycled", "classwise", "minimum", "plain"])
def test_large_alpha_is_uniform(rule):
    # models-data-metrics B3: class shares within 5 % of uniform. 100,000 samples a client keep the sampling noise of
    # client-wise rules, sqrt(.09 / 1e5) = .95 % of a share of .1, well below that. 1.7e308 overflows NumPy's own draw.
    labels = np.repeat(np.arange(10), 40_000)
    for alpha in (1e6, 1.7e308) if rule != "recycled" else (1e6,):
        counts = split("dirichlet", {"alpha": alpha, "clients": 4, "rule": rule}, labels).counts(labels, 10)
        shares = counts / counts.sum(axis=1, keepdims=True)
        assert np.abs(shares / 0.1 - 1).max() < 0.05


@pytest.mark.parametrize("alpha", [1e-6, 1e-320])
def test_tiny_alpha_ends(alpha):
    # One class a client in the limit: balanced must go on when that class is used up, recycled starts it again.
    balanced = split("dirichlet", {"alpha": alpha, "clients": 40}).clients
    assert [len(c) for c in balanced] == [100] * 40 and len(np.unique(np.concatenate(balanced))) == 4000
    recycled = split("dirichlet", {"alpha": alpha, "clients": 40, "rule": "recycled"})
    assert recycled.summary(LABELS, 10)["classes_mean"] == 1
    assert "would have no sample" in refused("dirichlet", {"alpha": alpha, "rule": "classwise"})
    assert "in 1000 draws" in refused("dirichlet", {"alpha": alpha, "rule": "minimum"})


@pytest.mark.parametrize("alpha", [0.01, 0.5, 20.0])
def test_shares_are_dirichlet_and_never_lost(alpha):
    # Mean 1/10 and variance (1/10)(9/10)/(10 alpha + 1) of the distribution; five standard errors of 20,000 draws.
    logs = log_shares(np.random.default_rng(0), alpha, 20_000, 10)
    assert np.isfinite(logs).all()
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    variance = 0.09 / (10 * alpha + 1)
    assert np.abs(shares.mean(axis=0) - 0.1).max() < 5 * np.sqrt(variance / 20_000)
    assert shares.var() == pytest.approx(variance, rel=0.03)
    # At alpha .01 some of ten shares lie under 1e-16 in nearly every row; their order must survive.
    assert len(np.unique(logs[0])) == 10


def test_a_used_up_class_is_followed_by_the_next_of_the_clients_own():
    # One-hot shares: a client holds one class, and one more each time the class runs out. Without the preference
    # of its own (a uniform choice among what is left) the mean was 6.3 classes.
    labels = np.repeat(np.arange(10), 5000)
    means = [split("dirichlet", {"alpha": 1e-6}, labels, seed=s).summary(labels, 10)["classes_mean"] for s in range(5)]
    assert 1.5 < np.mean(means) < 4


def test_absent_classes_do_no_harm():
    labels = LABELS[LABELS < 7]  # 10 classes declared, 7 present
    for rule in ("balanced", "recycled"):
        for alpha in (1e-6, 1.0):
            counts = split("dirichlet", {"alpha": alpha, "rule": rule, "clients": 30}, labels).counts(labels, 10)
            assert counts[:, 7:].sum() == 0 and len(set(counts.sum(axis=1))) == 1
    assert "clients would have no sample" in refused("classes", {"k": 1, "clients": 10}, labels)


@pytest.mark.parametrize(("name", "options"), RULES)
def test_the_seed_decides_and_nothing_else(name, options):
    options = {**options, "clients": 10}
    state = np.random.get_state(legacy=False)["state"]["key"].copy()
    first = split(name, options)
    assert np.array_equal(state, np.random.get_state(legacy=False)["state"]["key"])
    np.random.seed(5)
    assert split(name, options).hash == first.hash
    assert split(name, options, seed=1).hash != first.hash


def test_summary_and_counts_by_hand():
    # Shares (1, 0) and (0, 1), mean (.5, .5): every square is .25. The empty client has no shares.
    labels = np.array([0, 0, 1, 1])
    dealt = Split("t", (np.array([0, 1]), np.array([2, 3, 3]), np.array([], dtype=np.int64)), 0)
    assert dealt.counts(labels, 2).tolist() == [[2, 0], [0, 3], [0, 0]]
    summary = dealt.summary(labels, 2)
    assert summary["heterogeneity"] == 0.25 and summary["empty"] == 1 and summary["distinct"] == 4
    assert (summary["size_min"], summary["size_max"], summary["size_mean"]) == (0, 3, 5 / 3)
    assert summary["classes_mean"] == pytest.approx(2 / 3)
    # P = (2/5, 3/5): half the absolute differences are 3/5 and 2/5, their mean 1/2. One class each: exp(0) = 1.
    assert summary["total_variation"] == pytest.approx(0.5) and summary["effective_classes"] == 1
    # Sizes 2, 3, 0: variance 14/9, mean 5/3.
    assert summary["size_cv"] == pytest.approx(np.sqrt(14 / 9) / (5 / 3))
    assert (summary["class_min"], summary["class_max"], summary["unused"]) == (2, 3, 0)
    # Shares (1/2, 1/2): entropy log 2, so two classes.
    assert Split("t", (np.arange(4),), 0).summary(labels, 2)["effective_classes"] == pytest.approx(2)
    # Held out of the training part: neither held nor unused.
    held = Split("t", (np.array([0]),), 0, (np.array([1, 2]),), "train").summary(labels, 2)
    assert (held["unused"], held["tested"], held["test_rows"]) == (1, 1, 2)
    with pytest.raises(Refused, match="names sample 3, the data has 2"):
        dealt.counts(labels[:2], 2)


@pytest.mark.parametrize(
    ("name", "options", "part"),
    [
        ("dirichlett", {}, "unknown split 'dirichlett': did you mean dirichlet"),
        ("dirichlet", {}, "dirichlet needs the option 'alpha'"),
        ("dirichlet", {"alpha": 1, "client": 3}, "dirichlet has no option 'client': did you mean clients"),
        ("dirichlet", {"alpha": 0}, "alpha=0 is not a finite number above 0"),
        ("dirichlet", {"alpha": float("nan")}, "alpha=nan"),
        ("dirichlet", {"alpha": float("inf")}, "alpha=inf"),
        ("dirichlet", {"alpha": "a"}, "alpha='a'"),
        ("dirichlet", {"alpha": 1, "rule": "ballanced"}, "no rule 'ballanced': did you mean balanced"),
        ("dirichlet", {"alpha": 1, "empty": "yes"}, "empty='yes' is unknown"),
        ("dirichlet", {"alpha": 1, "min_size": 5}, "min_size=5 means nothing with rule='balanced'"),
        ("iid", {"clients": 0}, "clients=0 is not a whole number above 0"),
        ("iid", {"clients": 2.0}, "clients=2.0 is not a whole number above 0"),
        ("iid", {"clients": 5000}, "clients=5000 is more than the 4003 samples: take 4003 or fewer"),
        ("classes", {"k": 11}, "k=11 is more than the 10 classes"),
        ("classes", {"k": 0}, "k=0 is not a whole number"),
        ("dirichlet", {"alpha": 1, "sigma": -1}, "sigma=-1 is not a finite number from 0"),
        ("shards", {"k": 2.5}, "k=2.5 is not a whole number above 0"),
        ("quantity", {"alpha": True}, "alpha=True is not a finite number above 0"),
        ("quantity", {"alpha": 1, "min_size": 50}, "take min_size=40 or clients=80"),
        ("dirichlet", {"alpha": 1, "min_size": "labels"}, "min_size='labels' is not a whole number"),
        # 4003 // 41 = 97 and 4003 // 100 = 40.
        (
            "dirichlet",
            {"alpha": 1, "rule": "minimum", "min_size": 100, "clients": 41},
            "take min_size=97 or clients=40",
        ),
    ],
)
def test_bad_options_are_refused_with_a_way_out(name, options, part):
    assert part in refused(name, options)


def test_all_problems_at_once():
    options = {"alpha": -1, "clients": -5, "rule": "none", "empty": 3, "min_size": 0}
    assert len(refused("dirichlet", options).splitlines()) == 5  # one for each option


def test_labels_that_are_none_are_refused():
    assert "no list of class numbers 0 to 4" in refused("iid", {"clients": 2}, classes=5)
    assert "no list of class numbers" in refused("iid", {"clients": 2}, LABELS.astype(float))
