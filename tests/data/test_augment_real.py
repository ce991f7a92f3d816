"""The first augmented batch of real CIFAR-10: golden hashes by code base."""

import hashlib
import io
import zipfile

import numpy as np
import pytest
import torch
from shared import needs_shared, shared

from holdfast.data.augment import augmentation, row_keys
from holdfast.data.normal import normalised
from holdfast.data.plan import keys
from holdfast.data.sets import Dataset

GOLDEN = {
    ("none", "fl_simulator_cifar10"): "38dff2e3620e11db1498633a11d712e4a9995afba9476107694e8c9369c428ab",
    ("fl_simulator", "fl_simulator_cifar10"): "8495247245211045d39bb70769ad69deebfde9b3a3b48866b5703c4eeedef8b6",
    ("feddecorr", "feddecorr_cifar10"): "96832f5eb69bab8cb8c605bc06fd6391a126d1665828f3eed772d25d76bbb468",
    ("feddecorr_auto", "feddecorr_cifar10"): "b808b0b9c85ec40ae16ba423f5a774cdb42bd3a7ead96c784a7f6a50e73e64db",
    ("moon_cifar10", "moon_cifar10"): "333dc427e792f21962c3a66ca952f98a8691c11b382df99122c02038a12194f9",
    ("fedsol", "fedsol_cifar10"): "226a86f7ad04aa3a00692376453b9b5341a72e795ee916d68daf4695d8595a9e",
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
    own = row_keys(keys(0, 0, torch.arange(1)), 0, 50)[0]
    batch = augmentation(text)(data.x, own, lambda x: data.prepare(x, torch.float32))
    assert batch.shape == (50, 3, 32, 32)
    assert hashlib.sha256(batch.numpy().tobytes()).hexdigest() == GOLDEN[text, constants]
