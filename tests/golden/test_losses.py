"""Losses in full precision: a refactor must leave them as they are. `python tests/golden/test_losses.py` writes them.

They are what this library computed when they were written, no outside truth; oracles and golden rows are that.
"""

import json
import sys
from pathlib import Path

import pytest

import holdfast

STORED = Path(__file__).with_name("losses.json")
METHODS = (
    "fedavg",
    "feddc",
    "fedfft_s + clip(max=1.0) + wd",
    "moon + momentum",
    "fedsmoo",
    "fedeve + gh",
    "fedper + cm",
)


def losses(method: str) -> list[float]:
    run = holdfast.run(
        method=method, model="cnn(width=4)", split="dirichlet(alpha=0.3, clients=20)", rounds=3, cohort=4, epochs=2,
        dtype="float64", engine="loop", threads=1,
    )  # fmt: skip
    return [row["train_loss"] for row in run.metrics]


@pytest.mark.parametrize("method", METHODS)
def test_losses_are_as_they_were(method):
    # 1e-9: another BLAS may add in another order; a changed formula moves more.
    assert losses(method) == pytest.approx(json.loads(STORED.read_text())[method], rel=1e-9, abs=0)


if __name__ == "__main__":
    STORED.write_text(json.dumps({method: losses(method) for method in METHODS}, indent=1) + "\n")
    sys.exit()
