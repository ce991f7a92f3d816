"""What a large data set may not do: be copied whole, or be scored twice."""

import hashlib
import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

from holdfast import evaluate
from holdfast.data.sets import Dataset
from holdfast.data.splits import Split
from holdfast.execute import auto
from holdfast.experiment import Run, digest, ready
from holdfast.round import cast
from holdfast.simulate import State, gather

DRAW = np.random.default_rng(2)


def test_a_hash_of_the_data_copies_none_of_it(tmp_path):
    array = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (8 << 20,))
    array[:] = 7
    held = torch.from_numpy(np.load(tmp_path / "x.npy", mmap_mode="c"))
    tracemalloc.start()
    found = digest(held)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The hash that runs have stored: of type, shape and bytes.
    assert found == hashlib.sha256(b"torch.uint8(8388608,)" + array.tobytes()).hexdigest()
    assert peak < 1 << 20


@pytest.mark.parametrize("tensor", [torch.tensor(2.5), torch.zeros(0, 3), torch.arange(12).view(3, 4).T])
def test_the_hash_of_any_tensor_is_of_its_values_row_by_row(tensor):
    said = f"{tensor.dtype}{tuple(tensor.shape)}".encode() + tensor.numpy().tobytes()
    assert digest(tensor) == hashlib.sha256(said).hexdigest()


SEEN: list[int] = []


class Counting(nn.Module):
    """A linear model that notes how many rows it was given."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        SEEN.append(len(x))
        return self.layer(x)


@pytest.mark.parametrize(("part", "scored"), [("test", 50), ("train", 50 + 30)])
def test_every_row_is_scored_once(part, scored, monkeypatch):
    monkeypatch.setattr(evaluate, "ROWS", 8)
    x, y = DRAW.normal(size=(60, 4)), DRAW.integers(0, 2, 60)
    data = Dataset.of(x, y, x[:50], y[:50], classes=2)
    tests = np.arange(20, 30), np.arange(30, 50)  # of training rows, or of test rows, of which two lie in both
    split = Split("by hand", (np.arange(10), np.arange(10, 20)), 0, tests, part)
    fed = ready(Run(data=data, split=split, model=Counting(), cohort=2, engine="loop", threads=1)).federation
    SEEN.clear()
    row = evaluate.evaluate(fed, state := State.of(fed))
    assert sum(SEEN) == scored and max(SEEN) <= 8
    right = fed.task.forward(state.server.w, {}, fed.plain(torch.arange(60), torch.ones(60, dtype=torch.bool)))
    right = (right.logits.argmax(1) == fed.data.y).double()  # the test data is the first 50 training rows
    own = [float(right[20:30].mean()), float(right[30:50].mean())]
    assert row["client_accuracy"] == pytest.approx(np.mean(own), abs=1e-12)
    assert row["client_pooled"] == pytest.approx(float(right[20:50].mean()), abs=1e-12)


def test_whether_a_model_can_be_mapped_is_tried_on_few_rows():
    fed = ready(Run(model="logreg", batch=20, cohort=4, threads=1)).federation
    state, ids, seen = State.of(fed), np.arange(4), []
    down = cast(fed.method.bound(fed.options), state.server, torch.tensor(0.1))

    def feed(index, live, keys, step):
        seen.append((tuple(index.shape), bool(live[:, 0].all())))
        return fed.feed(index, live, keys, step)

    assert auto.trial(fed.method, fed.task, fed.options, down, gather(fed, state, 0, ids), feed) == ""
    assert seen == [((2, 2), True)]
