"""Real data from beside the project, through split, augmentation and a round; skipped where it is absent.

The arrays are those that `shared.py` unpacks; that the readers give the same ones is `test_readers_real.py`'s affair.
"""

import hashlib
import time

import numpy as np
import pytest
import torch
from shared import cifar, labels, needs_shared, unpacked

import holdfast
from holdfast.data.sets import Column, Dataset
from holdfast.experiment import Run, ready
from holdfast.simulate import State, gather

SETTINGS = {
    "cifar10": ("dirichlet(alpha=0.1, clients=100, rule='recycled')", "fl_simulator", "fl_simulator_cifar10"),
    "cifar100": ("dirichlet(alpha=0.1, clients=20, rule='minimum')", "feddecorr_auto", "feddecorr_cifar100"),
    "mnist_writers": ("natural(by='writer')", "none", "fl_simulator_mnist"),
    "femnist": ("natural(by='writer')", "none", "wenzhu_femnist"),
    "bloodmnist": ("dirichlet(alpha=0.5, clients=10)", "crop(pad=2) + flip", "half"),
}
# sha256 of the first batch of the first client of round 1, seed 0, batch 50. Made by this code, once the oracles of
# splits (test_splits*.py), plan (tests/executors) and augmentation (test_augment*.py) held.
GOLDEN = {
    "cifar10": "6f36074f80225053b05da9679485a81ee3f8bd79f0d5c14d39fca6f228f3c873",
    "cifar100": "ac4fd34750cd94757c4ca1bb766837f7596e8174f300f8829f60aa4c534d686d",
    "mnist_writers": "99ad2ffee2f7e7b755dafa2b3e74fd875e859e2f6f2a9584eb78ddec71d78954",
    "femnist": "3861770e63f7c273cd27e5c9551a7c67f87042e20f55196a23ce675f619732a8",
    "bloodmnist": "d593531ecc32fe12a92f34e3dc346c5fca8f8d9a6501341f2d6ced33695d543e",
}


def channels_first(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if x.ndim == 4 else x[:, None]


def real(name: str) -> Dataset:
    if name.startswith("cifar"):
        y = labels(name)
        parts = [channels_first(np.asarray(cifar(name, part))) for part in ("train", "test")]
        return Dataset.of(parts[0], y["train_y"], parts[1], y["test_y"], name=name)
    if name == "mnist_writers":
        held = unpacked("mnist_with_writers")
        train, test = (np.unique(held[f"{part}_writer"], return_inverse=True) for part in ("train", "test"))
        column = Column(tuple(map(str, train[0])), train[1], np.zeros(0, dtype=np.int64))
        return Dataset.of(held["train_x"][:, None], held["train_y"], held["test_x"][:, None], held["test_y"],
                          name=name, columns={"writer": column})  # fmt: skip
    held = unpacked({"femnist": "femnist_leaf_sample", "bloodmnist": "bloodmnist_sample"}[name])
    x, y = channels_first(held["x"]), held["y"].astype(np.int64)
    if name == "bloodmnist":
        return Dataset.of(x[500:], y[500:], x[:500], y[:500], name=name)
    test = held["split"] == 1
    column = Column(tuple(map(str, held["writers"])), held["writer"][~test], held["writer"][test])
    return Dataset.of(
        255 - x[~test], y[~test], 255 - x[test], y[test], name=name, classes=62, columns={"writer": column}
    )


@needs_shared
@pytest.mark.parametrize("name", SETTINGS)
def test_golden_first_batch(name):
    split, augment, constants = SETTINGS[name]
    run = Run(data=real(name), split=split, augment=augment, normalize=constants, model="logreg", batch=50, epochs=1,
              threads=1)  # fmt: skip
    fed = ready(run).federation
    cohort = gather(fed, State.of(fed), 0, np.array([0, 1]))
    n = int(cohort.live[0, 0].sum())
    batch = fed.feed(cohort.index[0, 0, :n], cohort.live[0, 0, :n], cohort.keys[0], 0)
    found = hashlib.sha256(batch.x.numpy().tobytes() + batch.y.numpy().tobytes()).hexdigest()
    assert found == GOLDEN[name]


@needs_shared
def test_cifar10_decoded_split_augmented_and_trained_for_a_round():
    """The papers' setting but for its rounds: all in a run, whose seconds it tells; nothing here asserts a time."""
    began = time.perf_counter()
    data = real("cifar10")
    assert hashlib.sha256(np.ascontiguousarray(np.moveaxis(data.x.numpy(), 1, -1)).tobytes()).hexdigest() == str(
        labels("cifar10")["train_sha256"]
    )
    decoded = time.perf_counter()
    result = holdfast.run(
        data=data, split="dirichlet(alpha=0.1, clients=100, rule='recycled')", augment="fl_simulator",
        normalize="fl_simulator_cifar10", model="resnet20", method="fedavg + specgrad(r=0.05) + clip + wd(wd=0.001)",
        cohort=10, epochs=1, batch=50, lr=0.1, rounds=1, seed=0,
    )  # fmt: skip
    row = result.metrics[0]
    assert row["steps"] == 100 and row["trained"] == 10 and 0.05 < row["accuracy"] < 0.5
    assert np.isfinite(row["train_loss"]) and row["loss"] < 4
    ended = time.perf_counter() - decoded
    print(f"decode {decoded - began:.1f} s; split, a round and its evaluation {ended:.1f} s, of which training "
          f"{row['train_seconds']:.1f} s")  # fmt: skip
    assert torch.isfinite(result.server.w).all()
