"""`--proxy`: samples of the test data that the server keeps to learn on (methods-server.md 12.4)."""

import tomllib

import pytest

from holdfast import simulate
from holdfast.experiment import Run, ready

BASE = "run --threads 1 --split 'iid(clients=20)' --cohort 5 --model logreg --steps 2 --rounds 3"


def test_it_is_written_down_and_resumes_to_the_same_bits(hold, folder):
    line = f"{BASE} --method fedlaw --proxy 0.05"
    assert hold(f"{line} --out whole").code == 0
    assert hold(f"{line} --rounds 1 --out a").code == 0
    done = hold("run --out a --resume --rounds 3")
    assert done.code == 0, done.err
    assert folder("a").bits == folder("whole").bits and folder("a").same == folder("whole").same
    assert tomllib.loads((folder("a").path / "run.toml").read_text())["run"]["proxy"] == 0.05
    done = hold("run --out a --resume --proxy 0.1")
    assert done.code == 2 and "proxy is 0.05" in done.err


def test_absorb_gets_it(monkeypatch):
    seen = []

    def absorb(*inputs, proxy=None, **others):
        seen.append(proxy)
        return real(*inputs, proxy=proxy, **others)

    real = simulate.absorb
    monkeypatch.setattr(simulate, "absorb", absorb)
    made = ready(Run(model="logreg", split="iid(clients=20)", cohort=5, steps=1, threads=1, proxy=0.02))
    simulate.advance(made.federation, simulate.State.of(made.federation))
    assert seen == [made.federation.proxy] and len(seen[0].y) == 10  # 0.72 of a class, rounded to 1


def test_the_model_trains_on_the_same_whether_it_is_there_or_not(hold, folder):
    # Only the test data changes, so what fedavg learns does not.
    assert hold(f"{BASE} --out a").code == 0
    assert hold(f"{BASE} --proxy 0.1 --out b").code == 0
    assert folder("a").bits == folder("b").bits
    # 320 of 360 test samples are left, so the accuracy is a multiple of 1/320.
    assert folder("b").metrics[-1]["accuracy"] * 320 % 1 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "value, words",
    [
        ("-0.1", ["proxy=-0.1", "below 0.5"]), ("0.5", ["proxy=0.5", "below 0.5"]), ("nan", ["proxy=nan"]),
        ("0.001", ["0.014 or more"]),
    ],
)  # fmt: skip
def test_wrong_shares_are_refused(hold, folder, value, words):
    done = hold(f"{BASE} --proxy={value} --out a")
    assert done.code == 2 and all(word in done.err for word in words), done.err
    assert not folder("a").path.exists()


def test_a_method_that_needs_it_says_so(hold, folder):
    done = hold(f"{BASE} --method fedlaw --out a")
    assert done.code == 2 and "--proxy 0.02" in done.err and not folder("a").path.exists()
    assert "needs samples at the server" in hold("explain fedlaw --model logreg").out  # costs are told without
