"""Metrics against the spec's values, against definitions written out in NumPy, and against FedEve's printed cells."""

import math

import numpy as np
import pytest
import torch

from holdfast import metrics, noise
from holdfast.metrics import (
    Seeds,
    auc,
    bits_to_target,
    by_group,
    collapse,
    hit_ratio,
    ndcg,
    ranking,
    ranks,
    relative_bits,
    rounds_to_target,
    seconds_to_target,
    told,
)

KEY = torch.tensor(7)


def slow_auc(scores, labels):
    """Every pair of a positive and a negative, counted."""
    pairs = [(p, q) for p in scores[labels == 1] for q in scores[labels == 0]]
    return sum(1.0 if p > q else 0.5 if p == q else 0.0 for p, q in pairs) / len(pairs)


def slow_rank(scores, items, positive):
    """One user: each item's best score; 1 + the items strictly above the positive one. For scores without ties."""
    best = {}
    for score, item in zip(scores, items, strict=True):
        best[item] = max(score, best.get(item, -math.inf))
    return 1 + sum(score > best[positive] for score in best.values())


def listed(rank, others=99):
    """One user with items 0 to 99 of which number 0 is the positive and gets this rank."""
    scores = torch.arange(others, 0, -1, dtype=torch.float64)
    scores = torch.cat([torch.tensor([others + 1.5 - rank]), scores])
    labels = torch.zeros(others + 1).long()
    labels[0] = 1
    return scores, torch.zeros(others + 1).long(), torch.arange(others + 1), labels


@pytest.mark.parametrize(("rank", "hr", "gain"), [(1, 1, 1), (3, 1, 0.5), (10, 1, 1 / math.log2(11)), (11, 0, 0)])
def test_the_specs_ranks(rank, hr, gain):
    # models-data-metrics C: R=1 -> 1, 1; R=3 -> NDCG .5 = 1/log2(4); R=11 -> 0 at K=10.
    found = ranking(*listed(rank), KEY)
    assert ranks(*listed(rank), KEY)[1].tolist() == [rank]
    assert (found.hit_ratio, found.users) == (hr, 1)
    assert found.ndcg == pytest.approx(gain, abs=1e-15)
    # Addendum B14: the printed formula is HR with 0/0 := 0.
    assert found.ndcg_printed == hr


def test_constant_scores_are_a_lottery():
    # 1 of 100 candidates in the first ten: .10; of 4,000 users the standard deviation is sqrt(.1 * .9 / 4000) = .0047.
    users = torch.arange(4000).repeat_interleave(100)
    items = torch.arange(100).repeat(4000)
    labels = (items == 0).long()
    found = ranking(torch.zeros(400_000), users, items, labels, KEY)
    assert found.auc == 0.5
    assert abs(found.hit_ratio - 0.10) < 4 * 0.0047
    # Every rank is as likely as any other: mean 50.5, standard deviation of the mean 28.87 / sqrt(4000) = .456.
    assert abs(float(ranks(torch.zeros(400_000), users, items, labels, KEY)[1].double().mean()) - 50.5) < 4 * 0.456
    other = ranks(torch.zeros(400_000), users, items, labels, torch.tensor(8))[1]
    assert not torch.equal(other, ranks(torch.zeros(400_000), users, items, labels, KEY)[1])


def drawn(seed, users=30, rows=40, items=25):
    """Rows of many users, shuffled, with items that occur more than once; each user has one positive item."""
    rng = np.random.default_rng(seed)
    user = np.repeat(rng.permutation(1000)[:users], rows)
    item = rng.integers(items, size=users * rows)
    positive = np.repeat(item.reshape(users, rows)[:, 0], rows)
    score = rng.permutation(users * rows).astype(float)
    order = rng.permutation(users * rows)
    return score[order], user[order], item[order], (item == positive).astype(int)[order]


@pytest.mark.parametrize("seed", range(5))
def test_ranks_against_one_user_at_a_time(seed):
    score, user, item, label = drawn(seed)
    known, found = ranks(*(torch.tensor(v) for v in (score, user, item, label)), key=KEY)
    expected = []
    for u in known.tolist():
        own = user == u
        expected.append(slow_rank(score[own], item[own], item[own & (label == 1)][0]))
    assert known.tolist() == sorted(set(user.tolist()))
    assert found.tolist() == expected


def test_neither_row_order_nor_label_breaks_a_tie():
    score, user, item, label = (torch.tensor(v) for v in drawn(1))
    tied = (score / 200).floor()
    _, found = ranks(tied, user, item, label, KEY)
    mixed = torch.randperm(len(score), generator=torch.Generator().manual_seed(0))
    assert torch.equal(ranks(tied[mixed], user[mixed], item[mixed], label[mixed], KEY)[1], found)
    # A tie of the positive with 9 others: over 1,000 keys its mean rank is 5.5 with deviation 2.87 / sqrt(1000) = .091.
    one = torch.zeros(10), torch.zeros(10).long(), torch.arange(10), (torch.arange(10) == 0).long()
    each = [int(ranks(*one, noise.fold(torch.tensor(k)))[1]) for k in range(1000)]
    assert abs(np.mean(each) - 5.5) < 4 * 0.091 and set(each) == set(range(1, 11))


def test_duplicates_count_once_and_nan_comes_last():
    # Items 5, 5, 3, 2 (positive), 4: the two rows of item 5 are one candidate above the positive, so R = 3, not 4.
    scores = torch.tensor([9.0, 8.0, 7.0, 6.0, 1.0])
    items, labels = torch.tensor([5, 5, 3, 2, 4]), torch.tensor([0, 0, 0, 1, 0])
    users = torch.zeros(5).long()
    assert ranks(scores, users, items, labels, KEY)[1].tolist() == [3]
    # The worse copy of the positive is dropped: its better one has rank 1.
    assert ranks(scores, users, torch.tensor([2, 5, 3, 2, 4]), torch.tensor([1, 0, 0, 1, 0]), KEY)[1].tolist() == [1]
    scores[3] = math.nan
    assert ranks(scores, users, items, labels, KEY)[1].tolist() == [4]
    with pytest.raises(ValueError, match="several positive"):
        ranks(scores, users, items, torch.tensor([0, 0, 1, 1, 0]), KEY)


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_the_share_of_ordered_pairs(seed):
    rng = np.random.default_rng(seed)
    scores, labels = rng.integers(12, size=80) / 4, rng.integers(2, size=80)
    assert auc(torch.tensor(scores), torch.tensor(labels)) == pytest.approx(slow_auc(scores, labels), abs=1e-14)


def test_auc_at_its_ends():
    scores, labels = torch.tensor([0.1, 0.2, 0.8, 0.9]), torch.tensor([0, 0, 1, 1])
    assert (auc(scores, labels), auc(-scores, labels), auc(scores * 0, labels)) == (1.0, 0.0, 0.5)
    assert math.isnan(auc(scores, labels * 0))
    assert math.isnan(auc(scores * math.nan, labels))
    # Global, not a mean over users: two users, each in perfect order (per-user 1.0), but on different scales:
    # pairs (2 > 1), (2 < 3), (4 > 1), (4 > 3) -> 3/4.
    assert auc(torch.tensor([2.0, 1.0, 4.0, 3.0]), torch.tensor([1, 0, 1, 0])) == 0.75


def test_accuracy_by_group():
    # Group 0: 3 of 4, group 1: 1 of 2, group 2 empty, group 3: 0 of 2.
    right = torch.tensor([1, 1, 1, 0, 1, 0, 0, 0]).bool()
    found = by_group(right, torch.tensor([0, 0, 0, 0, 1, 1, 3, 3]), 4)
    assert found.n.tolist() == [4, 2, 0, 2]
    assert found.accuracy[[0, 1, 3]].tolist() == [0.75, 0.5, 0.0] and math.isnan(found.accuracy[2])
    assert found.mean == pytest.approx(1.25 / 3)  # of three groups
    assert found.pooled == 0.5  # 4 of 8
    assert found.sd == pytest.approx(np.std([0.75, 0.5, 0.0]))
    assert found.worst_decile == pytest.approx(np.quantile([0.75, 0.5, 0.0], 0.1))
    assert found.worst_tenth == 0.0
    assert math.isnan(by_group(right[:0], torch.zeros(0).long(), 2).mean)


def test_worst_tenth_of_many_groups():
    # 40 groups of 100 samples with 1 to 40 right: the lowest four hold 1, 2, 3, 4 percent.
    group = torch.arange(40).repeat_interleave(100)
    found = by_group(torch.arange(100).repeat(40) <= group, group, 40)
    assert found.worst_tenth == pytest.approx(0.025)
    assert found.worst_decile == pytest.approx(np.quantile(np.arange(1, 41) / 100, 0.1))


def test_to_a_target():
    curve = [(1, 0.2), (2, 0.5), (3, 0.4), (4, 0.6)]
    assert rounds_to_target(curve, 0.5) == 2 and rounds_to_target(curve, 0.55) == 4
    never = rounds_to_target(curve, 0.61)
    assert never == math.inf and told(never) == "†" and told(2) == "2"
    # 32 bits x (10 + 8) clients x (1000 down + 500 up), by hand.
    assert bits_to_target([10, 8, 10], 1000, 500, 2) == 32 * 18 * 1500
    assert bits_to_target([10], 1, 1, never) == math.inf
    # FedFFT table 4's form: 300 of FedAvg's 800 rounds with twice the traffic.
    assert relative_bits(300, 800, 2) == 0.75
    # Mean of the last three seconds is 2; the first round is warm-up.
    assert seconds_to_target(10, [30, 1, 2, 3], warm_up=1) == 20
    assert seconds_to_target(never, [1.0]) == math.inf
    with pytest.raises(ValueError, match="2 cohorts"):
        bits_to_target([1, 1], 1, 1, 3)
    with pytest.raises(ValueError, match="no round is left"):
        seconds_to_target(1, [1.0], warm_up=1)


def test_spread_over_seeds_says_which():
    # (2 - 4)^2 + 0 + (6 - 4)^2 = 8: over 3 and over 2.
    found = Seeds.of([2.0, 4.0, 6.0])
    assert (found.n, found.mean, found.sample) == (3, 4.0, 2.0)
    assert found.population == pytest.approx(math.sqrt(8 / 3))
    assert found.text() == "4.00 ± 2.00 (n=3, ddof=1)" and found.text(ddof=0) == "4.00 ± 1.63 (n=3, ddof=0)"
    assert Seeds.of([3.0]) == (1, 3.0, 0.0, None) and Seeds.of([3.0]).text() == "3.00 (n=1)"


@pytest.mark.parametrize(
    ("mean", "sd", "collapsed"),
    # Addendum A15, FedEve table 3: five seeds of which this many stayed at 5.13 %, population deviation.
    [(66.38, 30.63, 1), (50.97, 37.43, 2), (51.07, 37.51, 2), (67.65, 31.26, 1), (60.22, 27.56, 1)],
)
def test_collapsed_seeds_of_fedeve(mean, sd, collapsed):
    good = (5 * mean - collapsed * 5.13) / (5 - collapsed) / 100
    last = [0.0513] * collapsed + [good] * (5 - collapsed)
    found = collapse(last, 0.0513)
    assert (found.collapsed, found.n) == (collapsed, 5) and found.rest == pytest.approx(good)
    # Rounding of the mean moves the deviation by up to .02.
    assert 100 * Seeds.of(last).population == pytest.approx(sd, abs=0.02)


def test_collapse_at_its_edges():
    assert collapse([0.11, 0.09, 0.111], 0.1) == (2, 3, 0.111)
    assert collapse([0.1], 0.1) == (1, 1, None)
    assert collapse([math.nan], 0.1).collapsed == 0  # not finite is another verdict, which the run gives


def test_printed_and_standard_ndcg_differ_only_below_rank_one():
    rank = torch.tensor([1, 2, 10, 11, 50])
    assert hit_ratio(rank, 10) == ndcg(rank, 10, printed=True) == 0.6
    assert ndcg(rank, 10) == pytest.approx((1 + 1 / math.log2(3) + 1 / math.log2(11)) / 5)
    assert metrics.DAGGER == "†"
