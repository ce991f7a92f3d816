"""The server's share of the test data: methods-server.md 12.4, class-balanced and removed from the test data."""

import numpy as np
import pytest
import torch

from holdfast.data.plan import generator
from holdfast.data.proxy import parted, taken
from holdfast.data.sets import digits
from holdfast.errors import Refused
from holdfast.experiment import Run, digest, ready


def test_as_many_of_every_class_and_none_left_in_the_test_data():
    # digits has 360 test samples: 0.1 is 36, that is 3.6 a class, rounded to 4.
    data = digits()
    rest, proxy = parted(data, 0.1, generator(0, "proxy"))
    assert torch.bincount(proxy.test_y).tolist() == [4] * 10 and len(rest.test_y) == 320
    together = torch.cat((rest.test_x, proxy.test_x)).flatten(1).tolist()
    assert sorted(together) == sorted(data.test_x.flatten(1).tolist())
    assert torch.equal(rest.x, data.x) and torch.equal(proxy.y, data.y)


def test_the_draw_is_the_seeds():
    y = digits().test_y.numpy()
    a, b, other = (taken(y, 10, 0.05, generator(seed, "proxy")).tolist() for seed in (0, 0, 1))
    assert a == b and a != other


@pytest.mark.parametrize(
    "share, words",
    [
        (0.01, ["proxy=0.01", "one sample of each of the 10 classes", "take 0.014 or more"]),  # 5/360 = 0.0139
        (1e-9, ["take 0.014 or more"]),
    ],
)
def test_a_share_too_small_for_a_class_is_refused_with_one_that_does(share, words):
    y = digits().test_y.numpy()
    with pytest.raises(Refused) as caught:
        taken(y, 10, share, generator(0, "proxy"))
    assert all(word in str(caught.value) for word in words)
    assert len(taken(y, 10, 0.014, generator(0, "proxy"))) == 10


def test_a_class_never_loses_its_last_test_sample():
    y = np.array([0] * 95 + [1] * 5)
    with pytest.raises(Refused, match="class 1 has 5"):
        taken(y, 2, 0.1, generator(0, "proxy"))
    with pytest.raises(Refused, match="more test samples"):
        taken(np.arange(10), 10, 0.4, generator(0, "proxy"))


def test_the_federation_holds_it_normalised_and_the_hash_is_of_all_data():
    run = Run(model="logreg", split="iid(clients=10)", cohort=2, proxy=0.1, threads=1, dtype="float64")
    made, data = ready(run), digits()
    proxy = made.federation.proxy
    assert proxy is not None and proxy.live.all() and proxy.x.dtype == torch.float64 and len(proxy.y) == 40
    # digits' constants are those of its training samples; normalised by hand here.
    x = data.x.double()
    _, held = parted(data, 0.1, generator(0, "proxy"))
    assert torch.allclose(proxy.x, (held.test_x.double() - x.mean()) / x.std(correction=0), atol=1e-3)
    assert len(made.federation.data.test_y) == 320
    assert made.facts["data_sha256"] == digest(data.x, data.y, data.test_x, data.test_y)
    assert ready(Run(model="logreg", split="iid(clients=10)", cohort=2)).federation.proxy is None
