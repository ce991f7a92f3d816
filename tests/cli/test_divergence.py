"""What is not finite is named with its client, its part and its step, and stops the run or leaves the client out."""

import pytest

import holdfast
from holdfast.errors import Failed

SMALL = {"split": "iid(clients=6)", "cohort": 3, "epochs": 1, "batch": 50, "model": "mlp", "rounds": 4, "seed": 1}


def said(**options):
    with pytest.raises(Failed) as failed:
        holdfast.run(**SMALL | options)
    return str(failed.value)


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_a_part_that_makes_nan_is_named(engine):
    # cos/tau overflows at tau = 1e-40, and inf - inf is NaN: moon's own doing, in the first step of round 1.
    text = said(method="moon(tau=1e-40)", engine=engine)
    assert text.startswith("round 1: the update of clients ")
    assert "what part 'moon' returns in 'loss' is not finite in local step 1 of 5" in text
    assert "--on-nan drop" in text


def test_a_learning_rate_that_is_too_large_is_nobodys_part():
    text = said(method="scaffold", lr=1e20)
    assert "'scaffold'" not in text and "is not finite in local step" in text and "lower lr" in text


def test_the_servers_part_is_named():
    # Adam's step is about 1 where the update is large beside tau, and 1e39 is no float32.
    text = said(method="adam(lr=1e39)")
    assert text.startswith("round 1, at the server: what part 'adam' returns in 'update' is not finite")


def test_drop_goes_on_without_the_client():
    result = holdfast.run(method="moon(tau=1e-40)", on_nan="drop", **SMALL)
    assert [len(row["dropped"]) for row in result.metrics] == [3] * 4 and result.done
    for row in result.metrics:  # the first client's cause, as a run that stops gives it
        assert row["dropped_why"].startswith(f"client {row['dropped'][0]}: what part 'moon' returns in 'loss' is not f")
    assert result.summary["last_accuracy"] == result.summary["best_accuracy"]  # nobody has moved the model


@pytest.mark.parametrize("lr", [1e-30, 1e-8])
def test_a_tiny_learning_rate_is_no_failure(lr):
    result = holdfast.run(method="scaffold + sam", lr=lr, **SMALL)
    assert result.done and all(row["loss"] is not None for row in result.metrics)


def test_dropped_clients_are_told_with_their_cause(hold):
    plain = "--split 'iid(clients=6)' --cohort 3 --epochs 1 --batch 50 --model mlp --rounds 1 --seed 1 --on-nan drop"
    out = hold(f"run --method 'moon(tau=1e-40)' {plain}").out
    assert "dropped [" in out and "what part 'moon' returns in 'loss' is not finite in local step 1 of 5" in out
    assert "dropped" not in hold(f"run --method fedavg {plain}").out
