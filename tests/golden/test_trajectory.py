"""`holdfast.testing.trajectory`: what it makes of clients that do not train, and what it refuses."""

import pytest
import torch
from rig import W0, A, B, p8

from holdfast.errors import Refused
from holdfast.testing import trajectory

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", ["fedavg", "uniform", "scaffold", "nova", "krum"])
def test_a_client_of_size_zero_does_not_train(text, engine):
    """MS 3 and 13: it is as if it were not in the cohort; N still counts it. Its steps are 0, whatever is given."""
    three = torch.cat((A, 5 + A[:1])), torch.cat((B, 9 - B[:1])), W0
    case = {"rounds": 4, "lr": 0.1, "sizes": [3.0, 1.0, 0.0], "engine": engine}
    with_it = trajectory(text, *three, steps=5, **case)
    assert torch.equal(with_it, trajectory(text, *three, steps=[5, 5, 0], **case))
    assert torch.equal(with_it, trajectory(text, *three, steps=5, cohort=[[0, 1]], **case))


def test_a_round_of_nobody_changes_nothing():
    """MS 13: the server waits."""
    path = p8("avgm", rounds=3, sizes=[1.0, 0.0], cohort=[[0], [1], [0]])
    assert torch.equal(path[0], path[1]) and not torch.equal(path[1], path[2])


@pytest.mark.parametrize(
    "case, said",
    [
        ({"cohort": [[0, 0]]}, "twice in a round"),
        ({"cohort": [[0], [2]]}, "does not exist; there are 2"),
        ({"cohort": [[-1]]}, "does not exist"),
        ({"cohort": [[0.5]]}, "does not exist"),
        ({"sizes": [1.0, -1.0]}, "not negative"),
        ({"sizes": [1.0, NAN]}, "sizes=.* finite"),
        ({"sizes": [INF, 1.0]}, "sizes=.* finite"),
        ({"sizes": [0, 0]}, "leaves nobody"),
        ({"lr": 0.0}, "lr=0.0 must be finite and above 0"),
        ({"lr": -0.1}, "above 0"),
        ({"lr": [0.1, NAN, 0.1]}, "lr=.* finite"),
        ({"lr": INF}, "lr=inf"),
        ({"steps": 2.5}, "steps=2.5 must be whole"),
        ({"steps": [2, 1.0]}, "steps=.* whole"),
        ({"steps": True}, "steps=True"),
        ({"rounds": 1.5}, "rounds=1.5 must be a whole number"),
    ],
)
def test_what_has_no_meaning_is_refused(case, said):
    with pytest.raises(Refused, match=said):
        p8("fedavg", **case)


def test_all_problems_are_told_at_once():
    with pytest.raises(Refused) as caught:
        p8("fedavg", rounds=0, lr=-1, steps=0, sizes=[-1], cohort=[[7, 7]])
    assert len(caught.value.problems) == 8
