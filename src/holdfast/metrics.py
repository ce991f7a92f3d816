"""What runs are judged by: pure functions of predictions, of curves and of seeds (models-data-metrics, part C).

Predictions come as tensors of one row a sample, on any device; no figure depends on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast import noise
from holdfast.statistics import mean, spread

DAGGER = "\N{DAGGER}"  # how the papers print a target that was never reached
COLLAPSED = 0.01  # a seed this close to the largest class share has learned nothing


class Groups(NamedTuple):
    """Accuracy of every group (client, writer, domain, corruption) and what is said of them together."""

    accuracy: Tensor  # [G] float64; NaN for a group without samples, which counts nowhere below
    n: Tensor  # [G]
    mean: float  # every group counts the same: the mean over domains
    pooled: float  # every sample counts the same: the papers' personalised accuracy, sum of correct / sum of samples
    sd: float  # over the groups, ddof 0: they are all there are, no sample of others
    worst_decile: float  # a tenth of the groups is at or below it (linear quantile), as runs write it
    worst_tenth: float  # the mean of the lowest tenth of the groups, at least one of them


def by_group(right: Tensor, group: Tensor, groups: int) -> Groups:
    """`right` [n] says of every sample whether it was classified rightly, `group` [n] whose it is, 0 to groups - 1."""
    n = torch.bincount(group, minlength=groups)
    correct = torch.bincount(group, weights=right.double(), minlength=groups)
    return together(correct, n)


def in_own_mix(right: Tensor, labels: Tensor, counts: Tensor) -> Groups:
    """The accuracy expected of every client on test data with its own class shares; `counts` [N, C] of its samples.

    sum_c (n_c / n) recall_c: what its own test rows would show in the mean over draws from the test data. A class that
    no test sample has is left out of n; a client without any other counts nowhere.
    """
    classes = counts.shape[1]
    tested = torch.bincount(labels, minlength=classes)
    recall = torch.bincount(labels, weights=right.double(), minlength=classes) / tested.clamp(min=1)
    held = counts.double() * (tested > 0)
    return together(held @ recall, held.sum(1))


def together(correct: Tensor, n: Tensor) -> Groups:
    """From the (expected) number of right answers of every group, and of its samples."""
    accuracy = correct / n  # 0/0 is NaN, as it is said to be
    found = accuracy[n > 0].sort().values
    if not len(found):
        return Groups(accuracy, n, math.nan, math.nan, math.nan, math.nan, math.nan)
    lowest = found[: max(1, len(found) // 10)]
    return Groups(
        accuracy,
        n,
        mean=float(found.mean()),
        pooled=float(correct.sum() / n.sum()),
        sd=float(found.std(correction=0)),
        worst_decile=float(found.quantile(0.1)),
        worst_tenth=float(lowest.mean()),
    )


def auc(scores: Tensor, labels: Tensor) -> float:
    """The area under the ROC curve over all rows at once: the share of (positive, negative) pairs in order, ties 1/2.

    FedEve's AUC is this one over all (user, item) rows, not a mean over users. NaN where a score is NaN or a class is
    absent: nothing can be said then.
    """
    positive = labels.bool()
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros or bool(scores.isnan().any()):
        return math.nan
    _, place, many = torch.unique(scores, return_inverse=True, return_counts=True)
    last = many.cumsum(0).double()
    rank = (last - (many - 1) / 2)[place]  # 1-based; equal scores share the mean of their ranks
    return float((rank[positive].sum() - ones * (ones + 1) / 2) / ones / zeros)


def ranks(scores: Tensor, users: Tensor, items: Tensor, labels: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """The users [U], ascending, and the 1-based rank R [U] of each one's positive item among its candidates.

    Rows of one item for one user count once, as the best-ranked of them. Equal scores are put in an order that
    `hash(key, user, item)` draws, so that no row order and no label decides; a score that is NaN comes last. Users and
    items are whole numbers from 0 on; a user has one positive item (label 1), and one without is left out.
    """
    scores, users, items = torch.where(scores.isnan(), -math.inf, scores.double()), users.long(), items.long()
    known, user = torch.unique(users, return_inverse=True)
    positive = labels.bool()

    def of_positive(values: Tensor, reduce: str) -> Tensor:
        found = torch.zeros(known.shape, dtype=values.dtype, device=values.device)
        return found.scatter_reduce(0, user[positive], values[positive], reduce, include_self=False)

    own, highest = of_positive(items, "amax"), of_positive(scores, "amax")
    if not torch.equal(own, of_positive(items, "amin")):
        raise ValueError("a user has several positive items: ranks are defined for one")
    drawn, mark = noise.fold(key, users, items), noise.fold(key, known, own)[user]
    level = scores == highest[user]
    earlier = (drawn < mark) | ((drawn == mark) & (items < own[user]))
    ahead = ((scores > highest[user]) | (level & earlier)) & (items != own[user])
    span = items.max() + 1
    rank = 1 + torch.bincount(torch.unique(user[ahead] * span + items[ahead]) // span, minlength=len(known))
    judged = torch.bincount(user[positive], minlength=len(known)) > 0
    return known[judged], rank[judged]


def hit_ratio(rank: Tensor, k: int = 10) -> float:
    """HR@K: the share of users whose positive item is among the first K."""
    return float((rank <= k).double().mean())


def ndcg(rank: Tensor, k: int = 10, printed: bool = False) -> float:
    """NDCG@K with one positive item: the mean of 1[R <= K] / log2(R + 1).

    `printed`: as it stands in FedEve, (2^1[R<=K] - 1) / log2(1[R<=K] + 1). A hit counts 1 whatever its rank, a miss is
    0/0, taken as 0: so it is HR@K. The authors' code computes the standard form.
    """
    hit = rank <= k
    gain = hit.double() if printed else hit / torch.log2(rank.double() + 1)
    return float(gain.mean())


class Ranking(NamedTuple):
    auc: float
    hit_ratio: float
    ndcg: float
    ndcg_printed: float
    users: int


def ranking(scores: Tensor, users: Tensor, items: Tensor, labels: Tensor, key: Tensor, k: int = 10) -> Ranking:
    """Everything that FedEve says of its recommender, from the test rows: a positive and 99 negatives a user."""
    known, rank = ranks(scores, users, items, labels, key)
    return Ranking(auc(scores, labels), hit_ratio(rank, k), ndcg(rank, k), ndcg(rank, k, printed=True), len(known))


def rounds_to_target(curve: Iterable[tuple[int, float]], target: float) -> float:
    """The first round (of pairs round, score) at the target or above; infinity if there is none."""
    return next((number for number, score in curve if score >= target), math.inf)


def bits_to_target(cohorts: Sequence[int], down: int, up: int, rounds: float, bits: int = 32) -> float:
    """The sum over these rounds of `bits x |S_t| x (down + up)`, numbers sent to and from each client.

    `cohorts` are the sizes `|S_t|` of the rounds from the first on; infinity if the target was never reached.
    """
    if rounds == math.inf:
        return math.inf
    if not 0 <= rounds <= len(cohorts):
        raise ValueError(f"{rounds} rounds, but the sizes of {len(cohorts)} cohorts")
    return float(bits * sum(cohorts[: int(rounds)]) * (down + up))


def relative_bits(rounds: float, of: int, multiplier: float = 1) -> float:
    """FedFFT's table 4: rounds / T x multiplier, T the rounds of FedAvg; 2 where a method sends twice as much."""
    return rounds / of * multiplier


def seconds_to_target(rounds: float, seconds: Sequence[float], warm_up: int = 0) -> float:
    """Rounds x mean seconds a round, evaluation excluded and without the first `warm_up` rounds."""
    counted = seconds[warm_up:]
    if not counted:
        raise ValueError(f"{len(seconds)} timed rounds, of which {warm_up} are warm-up: no round is left to count")
    return rounds * mean(counted)


def told(value: float, digits: int = 0) -> str:
    """A figure to a target; one that was never reached as a dagger."""
    return DAGGER if value == math.inf else f"{value:.{digits}f}"


class Seeds(NamedTuple):
    """A figure over seeds. No paper says which deviation it prints, so both stand here."""

    n: int
    mean: float
    population: float  # ddof 0
    sample: float | None  # ddof 1; none of a single seed

    @classmethod
    def of(cls, values: Sequence[float]) -> Seeds:
        if not values:
            raise ValueError("no values")
        sample, n = spread(values), len(values)
        return cls(n, mean(values), 0.0 if sample is None else sample * math.sqrt((n - 1) / n), sample)

    def text(self, scale: float = 1.0, digits: int = 2, ddof: int = 1) -> str:
        """'66.38 ± 30.63 (n=5, ddof=0)'"""
        sd = self.sample if ddof else self.population
        middle = f"{scale * self.mean:.{digits}f}"
        return f"{middle} (n=1)" if sd is None else f"{middle} ± {scale * sd:.{digits}f} (n={self.n}, ddof={ddof})"


class Collapse(NamedTuple):
    """How many seeds learned nothing, and the mean of the others (none if there is no other)."""

    collapsed: int
    n: int
    rest: float | None


def collapse(last: Sequence[float], largest_share: float) -> Collapse:
    """A seed collapsed when its last accuracy is within one point of the largest class share, its constant answer's.

    Addendum A15: five cells of FedEve's table 3 are five seeds of which one or two stayed at 5.13 %.
    """
    rest = [value for value in last if not abs(value - largest_share) <= COLLAPSED + 1e-12]
    return Collapse(len(last) - len(rest), len(last), mean(rest) if rest else None)
