"""A model that evaluates but cannot train is bad input like any other (issue 2: exit 2, named, nothing written)."""

from pathlib import Path

MODEL = """
from torch import nn


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = x.flatten(1)
        return self.head(x[:, :5] if self.training else x)


def half():
    return Half()
"""


def test_a_model_that_cannot_train_is_refused(hold):
    Path("half_model.py").write_text(MODEL)
    done = hold("run --model half_model:half --rounds 1 --threads 1 --split 'iid(clients=20)' --cohort 5 --out a")
    assert done.code == 2 and "cannot take a training step" in done.err, done.err
    assert not Path("a").exists()
