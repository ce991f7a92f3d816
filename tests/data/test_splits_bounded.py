"""Nothing hangs: so many draws, then the reason and settings that are met."""

import contextlib
import re

import numpy as np
import pytest

from holdfast.data.bounded import feasible, tries
from holdfast.data.dealing import Samples
from holdfast.data.splits import Split, make
from holdfast.errors import Refused

BALANCED = np.repeat(np.arange(10), 5000)
LABELS = np.random.default_rng(0).integers(0, 10, 4003)


def split(name, options, labels=LABELS, seed=0) -> Split:
    return make(name, options, Samples(labels, 10), seed, "text")


def refused(name, options, labels=LABELS) -> str:
    with pytest.raises(Refused) as caught:
        split(name, options, labels)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("quantity", {"alpha": 0.5}),
        ("dirichlet", {"alpha": 0.01, "rule": "minimum"}),
        ("dirichlet", {"alpha": 0.01, "rule": "plain"}),
        ("dirichlet", {"alpha": 0.01, "rule": "classwise"}),
    ],
)
def test_what_is_not_met_is_refused_with_settings_that_are(name, options):
    # The message names an alpha and a number of clients 'where most draws succeed': 20 seeds each, more than half.
    # (Were the truth one half, 4 of 20 or fewer would come up in .6 % of cases; found by 3 of 5 draws, so >= 5.)
    message = refused(name, options, BALANCED)
    found = dict(re.findall(r"(alpha|clients)=([\d.]+)(?= or | \(there)", message))
    assert set(found) == {"alpha", "clients"} and "there most draws succeed" in message
    for key, value in found.items():
        good = 0
        for seed in range(20):
            with contextlib.suppress(Refused):
                split(name, {**options, key: float(value) if key == "alpha" else int(value)}, BALANCED, seed)
                good += 1
        assert good >= 5, key


def test_the_largest_min_size_met_is_named():
    message = refused("quantity", {"alpha": 1.0, "clients": 40, "min_size": 90})  # 4003 / 40 = 100
    best = int(re.search(r"at best (\d+)", message)[1])  # pyright: ignore[reportOptionalSubscript]
    assert f"take min_size={best}," in message and 0 < best < 90
    split("quantity", {"alpha": 1.0, "clients": 40, "min_size": max(1, best // 2)})


def test_a_large_draw_is_repeated_less_often():
    # 20 million numbers at most, but 20 draws and 1,000 at most: 2e7 / (3400 * 62) = 94.9.
    assert (tries(100, 10), tries(3400, 62), tries(10**6, 100)) == (1000, 94, 20)


def test_the_search_ends_also_where_nothing_is_met():
    asked: list[tuple[float, int]] = []

    def smallest(rng: np.random.Generator, alpha: float, clients: int) -> int:
        asked.append((alpha, clients))
        return 0

    assert feasible(smallest, np.random.default_rng(0), 0.3, 100, 1, 10) == ""
    # Three draws of five decide; alphas .5 to 100 in steps 1, 2, 5; clients 80 % each time, down to 2.
    assert [a for a, n in asked if n == 100][::3] == [0.5, 1, 2, 5, 10, 20, 50, 100]
    assert [n for a, n in asked if a == 0.3][::3] == [80, 64, 51, 40, 32, 25, 20, 16, 12, 9, 7, 5, 4, 3, 2]
