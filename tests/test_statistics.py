"""Means, spreads and intervals against numbers worked out by hand and Student's tables."""

import math

from holdfast.statistics import interval, mean, shown, spread


def test_spread_is_the_sample_standard_deviation():
    # (2 - 4)^2 + 0 + (6 - 4)^2 = 8, over n - 1 = 2.
    assert spread([2.0, 4.0, 6.0]) == 2.0
    assert spread([3.0]) is None


def test_interval_is_students():
    # Two degrees of freedom: t = 4.303; sd 2, n 3.
    half = interval([2.0, 4.0, 6.0])
    assert half is not None and math.isclose(half, 4.303 * 2 / math.sqrt(3))
    assert interval([1.0]) is None


def test_shown():
    assert shown([0.5, 0.7], 100) == "60.00 ± 14.14"
    assert shown([0.5], 100) == "50.00"
    assert shown([]) == "-"
    assert mean([1.0, 2.0]) == 1.5
