"""CIFAR-10-C in its original layout, and made from CIFAR."""

import numpy as np
import originals
import pytest
from originals import pixels

from holdfast.data.bring import import_
from holdfast.data.readers.cifarc import EXTRA, MAIN
from holdfast.data.store import opened
from holdfast.errors import Refused

COUNT = 10  # images a severity, 10,000 in the real arrays


def arrays(folder, names=MAIN):
    """NAME.npy of 5 * COUNT images [h, w, 3], and labels.npy; the images of each are their own."""
    folder.mkdir()
    held = {name: pixels(5 * COUNT, 32, 32, 3, seed=k) for k, name in enumerate(names)}
    for name, images in held.items():
        np.save(folder / f"{name}.npy", images)
    np.save(folder / "labels.npy", np.tile(np.arange(COUNT), 5))
    return held


@pytest.mark.parametrize("form", ["folder", "tar"])
def test_every_corruption_is_cut_by_image(tmp_path, form):
    held = arrays(tmp_path / "CIFAR-10-C")
    path = tmp_path / "CIFAR-10-C"
    path = originals.tarred(tmp_path / "c.tar", path) if form == "tar" else path
    data = opened(import_(path, "cifar10c", {"severity": 4}, tmp_path / "store").folder)
    # 15 corruptions of 10 images: the first eight of each train, the last two test (models-data-metrics B3).
    assert (len(data.x), len(data.test_x), data.classes) == (15 * 8, 15 * 2, 10)
    kind, image = data.columns["corruption"], data.columns["image"]
    assert kind.names == MAIN and image.names == tuple(str(n) for n in range(COUNT))
    assert image.train.tolist() == [*range(8)] * 15 and image.test.tolist() == [8, 9] * 15
    for part, x, y in (("train", data.x, data.y), ("test", data.test_x, data.test_y)):
        for row in range(len(x)):
            name, number = MAIN[getattr(kind, part)[row]], getattr(image, part)[row]
            # The readme of the archive: rows 10000 (s - 1) to 10000 s are severity s.
            assert np.array_equal(x[row], held[name][3 * COUNT + number].transpose(2, 0, 1))
            assert y[row] == number


def test_extra_corruptions_and_severity(tmp_path):
    arrays(tmp_path / "c", MAIN + EXTRA)
    data = opened(import_(tmp_path / "c", "cifar10c", {"extra": True}, tmp_path / "store").folder)
    assert data.columns["corruption"].names == MAIN + EXTRA and len(data.x) == 19 * 8
    stored = {path.name for path in (tmp_path / "store" / "sets").iterdir()}
    assert stored == {"cifar10c,extra=True"}
    with pytest.raises(Refused) as caught:
        import_(tmp_path / "c", "cifar10c", {"severity": 6, "made": 1}, tmp_path / "store")
    assert caught.value.problems == (
        "severity=6 must be a whole number from 1 to 5",
        "made=1 must be True or False",
    )


def test_what_is_wrong_in_the_arrays_is_told(tmp_path):
    folder = tmp_path / "c"
    arrays(folder)
    np.save(folder / "fog.npy", pixels(5 * COUNT - 1, 32, 32, 3))
    with pytest.raises(Refused, match=r"fog\.npy: holds uint8 of shape \(49, 32, 32, 3\); it should be"):
        import_(folder, "cifar10c", {}, tmp_path / "store")
    np.save(folder / "labels.npy", np.arange(5 * COUNT))
    with pytest.raises(Refused, match="the same labels five times over"):
        import_(folder, "cifar10c", {}, tmp_path / "store")
    np.save(folder / "labels.npy", np.full(5 * COUNT, 10))
    with pytest.raises(Refused, match="holds labels 10 to 10; they should be below 10"):
        import_(folder, "cifar10c", {}, tmp_path / "store")


def test_made_from_cifar(tmp_path):
    """The corruptions of the package itself, one image at a time and with a seed of its own, are the expected ones."""
    functions = pytest.importorskip("imagecorruptions.corruptions", reason="pip install imagecorruptions-imaug")
    held = arrays(tmp_path / "c")
    x = pixels(10, 3, 32, 32, seed=40)
    clean = originals.cifar10(tmp_path / "p", x, np.arange(10), x, np.arange(10))
    import_(clean, "cifar10", {}, tmp_path / "store", checked=False)
    options = {"made": True, "images": 4, "severity": 2}
    before = np.random.get_state(legacy=False)["state"]["key"].copy()
    data = opened(import_(tmp_path / "c", "cifar10c", options, tmp_path / "store").folder)
    assert np.array_equal(np.random.get_state(legacy=False)["state"]["key"], before), (
        "NumPy's global generator must be as it was"
    )
    assert (len(data.x), len(data.test_x)) == (15 * 4, 15 * COUNT)
    image = data.columns["image"]
    assert image.names[image.train[3]] == "train 3" and image.names[image.test[3]] == "3"
    assert data.y.tolist() == [0, 1, 2, 3] * 15
    for name in ("defocus_blur", "brightness", "jpeg_compression", "pixelate"):  # those without randomness
        given = originals.Image.fromarray(x[2].transpose(1, 2, 0))
        expected = np.asarray(getattr(functions, name)(given, 2)).astype(np.uint8).transpose(2, 0, 1)
        assert np.array_equal(data.x[MAIN.index(name) * 4 + 2], expected)
    assert np.array_equal(data.test_x[0], held["gaussian_noise"][COUNT].transpose(2, 0, 1))
    again = import_(tmp_path / "c", "cifar10c", options, tmp_path / "store", replace=True)
    files = again.meta["files"]
    third = import_(tmp_path / "c", "cifar10c", options, tmp_path / "store", replace=True)
    assert third.meta["files"] == files, "the same noise every time"


def test_made_without_the_package_or_without_cifar_says_so(tmp_path):
    arrays(tmp_path / "c")
    with pytest.raises(Refused, match="cifar10 is not here; looked for"):
        import_(tmp_path / "c", "cifar10c", {"made": True}, tmp_path / "store")
