"""The first augmented batch of real CIFAR-10: golden hashes by code base."""

import hashlib
import io
import zipfile

import numpy as np
import pytest
import torch
from shared import needs_shared, shared

from holdfast.data.augment import augmentation, sample_keys
from holdfast.data.normal import normalised
from holdfast.data.plan import keys
from holdfast.data.sets import Dataset

GOLDEN = {
    ("none", "fl_simulator_cifar10"): "38dff2e3620e11db1498633a11d712e4a9995afba9476107694e8c9369c428ab",
    ("fl_simulator", "fl_simulator_cifar10"): "21da7429609dd09b0a78209e678191b012cd9a0d677874f878eeefdad71d2756",
    ("feddecorr", "feddecorr_cifar10"): "75082ca46c994e888a33a9f4a2a66c0d19c674d516087d1b0d2f21fde4dafe21",
    ("feddecorr_auto", "feddecorr_cifar10"): "3b5bbb0ef272580e213f5d64080ebfcbe2fa7be5916c7635318b1b9c6129082a",
    ("moon_cifar10", "moon_cifar10"): "38117c7e9cf2c98dd1588dca42b959e2fd09f3982f14a701ac81bd33dadb2d1e",
    ("fedsol", "fedsol_cifar10"): "520761ffc73317d487faa93c36c6206b350e9fa8837a2a578728ea31d8519545",
}


@pytest.fixture(scope="module")
def first_fifty():
    """The first 50 test images, [50, 3, 32, 32]: half of the first strip of the archive."""
    image = pytest.importorskip("PIL.Image", reason="pillow is needed to unpack the real data")
    with zipfile.ZipFile(shared("cifar10_test.zip")) as packed:
        strip = image.open(io.BytesIO(packed.read(sorted(packed.namelist())[0]))).convert("RGB")
    return torch.from_numpy(np.asarray(strip).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)[:50].copy())


@needs_shared
@pytest.mark.parametrize(("text", "constants"), sorted(GOLDEN))
def test_golden_first_batch_of_cifar10(text, constants, first_fifty):
    # Seed 0, client 0, round 0. Made by this code, once its oracles (test_augment*.py) held.
    mean, std = normalised(constants)
    y = torch.zeros(50, dtype=torch.int64)
    data = Dataset.of(first_fifty, y, first_fifty, y, classes=10, mean=mean, std=std)
    own = sample_keys(keys(0, 0, torch.arange(1)), 1, 50)[0, 0]
    batch = augmentation(text)(data.x, own, lambda x: data.prepare(x, torch.float32))
    assert batch.shape == (50, 3, 32, 32)
    assert hashlib.sha256(batch.numpy().tobytes()).hexdigest() == GOLDEN[text, constants]
