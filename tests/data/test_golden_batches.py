"""The first batch of sets that have natural or large forms, from files in their original layout through import and run.

The others are in test_real_runs.py and test_augment_real.py. The hashes were made by this code, once the oracles of
readers, splits, plan and augmentation held. Images are PNG whatever they are called, since decoders of JPEG differ.
"""

import hashlib
import zipfile

import numpy as np
import originals
import pytest
from originals import pixels, png
from shared import needs_shared, shared, texts
from test_movielens import random_set
from test_movielens import written as movielens
from test_readers_corruptions import arrays as corrupted
from test_shakespeare import roles_file
from test_yahoo import written as yahoo

from holdfast.data.bring import import_
from holdfast.experiment import Run, ready
from holdfast.simulate import State, gather

WORDS = ["some", "words", "that", "are", "asked", "about", "and", "some", "that", "are", "told"]


def tiny(folder):
    names = [(f"n{k % 2}", f"n{k % 2}_{k}.JPEG") for k in range(20)]
    images = {
        f"train/{label}/images/{name}": png(pixels(1, 3, 64, 64, seed=k)[0]) for k, (label, name) in enumerate(names)
    }
    tests = {f"val/images/val_{k}.JPEG": png(pixels(1, 3, 64, 64, seed=50 + k)[0]) for k in range(2)}
    lists = {
        "wnids.txt": "n0\nn1\n",
        "val/val_annotations.txt": "val_0.JPEG\tn0\t0\t0\t1\t1\nval_1.JPEG\tn1\t0\t0\t1\t1\n",
    }
    return originals.put(folder / "tiny-imagenet-200", {**images, **tests, **lists})


def stl10(folder):
    x = pixels(22, 3, 96, 96)
    return originals.stl10(folder / "stl10_binary", x[:20], np.arange(20) % 10, x[20:], [0, 1])


def ham10000(folder):
    sources = ("rosendahl", "vidir_molemax", "vidir_modern", "vienna_dias")
    rows = [f"HAM_{k},ISIC_{k:02},{('nv', 'mel')[k % 2]},histo,30,male,back,{sources[k % 4]}" for k in range(40)]
    head = "lesion_id,image_id,dx,dx_type,age,sex,localization,dataset"
    images = {f"part_1/ISIC_{k:02}.jpg": png(pixels(1, 3, 64, 64, seed=k)[0]) for k in range(40)}
    return originals.put(folder / "ham", {"HAM10000_metadata.csv": "\n".join([head, *rows, ""]), **images})


def cifar10c(folder):
    corrupted(folder / "CIFAR-10-C")
    return folder / "CIFAR-10-C"


def questions(folder):
    draw = np.random.default_rng(0)
    rows = [(k % 10 + 1, *(" ".join(draw.choice(WORDS, 9)) for _ in range(3))) for k in range(40)]
    return yahoo(folder / "y", rows[:30], rows[30:])


def roles(folder):
    """The real speeches of the first twenty roles."""
    return roles_file(folder, dict(list(texts("shakespeare_roles").items())[:20]))


def pacs(folder):
    """Every twentieth of the real images."""
    with zipfile.ZipFile(shared("pacs_64.zip")) as held:
        return originals.zipped(folder / "PACS.zip", {name: held.read(name) for name in sorted(held.namelist())[::20]})


MADE = {
    "tiny_imagenet": (tiny, "iid(clients=2)", "logreg"),
    "stl10": (stl10, "iid(clients=2)", "logreg"),
    "ham10000": (ham10000, "natural(by='domain')", "logreg"),
    "cifar10c": (cifar10c, "iid(clients=3)", "logreg"),
    "movielens1m": (lambda folder: movielens(folder, *random_set()), "natural(by='user')", "din"),
    "yahoo_answers": (questions, "iid(clients=2)", "textcnn"),
    "shakespeare": (roles, "natural(by='role')", "charlstm"),
    "pacs": (pacs, "natural(by='domain')", "logreg"),
}
GOLDEN = {
    (
        "tiny_imagenet",
        "fl_simulator_tiny",
        "fl_simulator_tiny",
    ): "f565e2c97139063b2da4b07693678df9ed5127be6866a321cc9ba09385fa1f37",
    (
        "tiny_imagenet",
        "feddecorr_tiny",
        "feddecorr_tiny",
    ): "2685ca27f578827fb4d4fe73c024bf856e681553be6f46086458ceddc99095b2",
    (
        "tiny_imagenet",
        "fedgh_tiny",
        "feddecorr_tiny",
    ): "2685ca27f578827fb4d4fe73c024bf856e681553be6f46086458ceddc99095b2",
    ("tiny_imagenet", "moon_tiny", "moon_tiny"): "63575d62263ef2af9dc9c4aa44205b6fd2c489cc55d3722f64840ad5ef9e9b35",
    ("stl10", "feduv_stl10", "feduv_stl10"): "3fb7385fda8caa6f10fd6835fec63f77717c31136b880d25e7cd0f0e614e0dc3",
    ("ham10000", "crop(pad=4) + flip", "half"): "8ea63d89a8bc93e51cfcead8630c2be74d97dd61a851ae63ea77240fce0612d7",
    (
        "cifar10c",
        "fl_simulator",
        "fl_simulator_cifar10",
    ): "fcc689d3dd4cf082b935e399ae40aa0442e97caf2524fae2452fe398e55767d8",
    ("movielens1m", "none", "data"): "ff0e1d5472d660d3fa1545f114a37d9619925b9d120d7327245ee3f87b2d565f",
    ("yahoo_answers", "none", "data"): "fd55d594d476908e4b7e37352ebe6201eaf4bbb3eb8a95072699fea4c5994783",
    ("shakespeare", "none", "data"): "84999215f119e425a3cde8c73cfe5dec57f07a844731a3e11ab30532378ff7b0",
    ("pacs", "fedgh", "half"): "a7945051212537db8c421ee47f5855ba73d3a415f7e8fde8f126d776b68ffc6b",
}
REAL = ("shakespeare", "pacs")
KEYS = [pytest.param(*key, marks=needs_shared) if key[0] in REAL else key for key in GOLDEN]


@pytest.mark.parametrize(("name", "augment", "constants"), KEYS)
def test_golden_first_batch(tmp_path, name, augment, constants):
    make, split, model = MADE[name]
    (tmp_path / "copy").mkdir()
    import_(make(tmp_path / "copy"), name, data_dir=tmp_path, checked=False)
    run = Run(data=name, data_dir=str(tmp_path), split=split, augment=augment, normalize=constants, model=model,
              cohort=2, batch=10, epochs=1, engine="loop", threads=1)  # fmt: skip
    fed = ready(run).federation
    cohort = gather(fed, State.of(fed), 0, np.array([0, 1]))
    n = int(cohort.live[0, 0].sum())
    batch = fed.feed(cohort.index[0, 0, :n], cohort.live[0, 0, :n], cohort.keys[0], 0)
    found = hashlib.sha256(batch.x.numpy().tobytes() + batch.y.numpy().tobytes()).hexdigest()
    assert found == GOLDEN[name, augment, constants]
