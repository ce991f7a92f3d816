"""A user's own files: images in class folders, arrays in an .npz; and `load` by name."""

import numpy as np
import originals
import pytest
import torch
from originals import pixels, png

from holdfast.data.sets import load
from holdfast.errors import Refused


def images(*folders, many=4, size=6):
    return {
        f"{folder}/{k}.png": png(pixels(1, 3, size, size, seed=place * 100 + k)[0])
        for place, folder in enumerate(folders)
        for k in range(many)
    }


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_train_and_test_folders(tmp_path, form):
    files = images("train/b", "train/a") | images("val/a", many=2, size=6)
    path = originals.put(tmp_path / "d", files)
    path = originals.zipped(tmp_path / "d.zip", files) if form == "zip" else path
    data = load("folder", {"path": str(path)})
    assert (data.classes, data.shape, data.y.tolist(), data.test_y.tolist()) == (
        2,
        (3, 6, 6),
        [0] * 4 + [1] * 4,
        [0, 0],
    )
    assert np.array_equal(data.x[5], pixels(1, 3, 6, 6, seed=1)[0])  # b is the first folder above and the second class
    assert data.name == f"folder(path={str(path)!r})"


def test_class_folders_with_a_share_held_out(tmp_path):
    path = originals.put(tmp_path / "d", images("cat", "dog", many=10))
    data = load("folder", {"path": str(path), "test": 0.3, "image_size": 4, "channels": 1})
    assert data.shape == (1, 4, 4)
    assert (data.y.bincount().tolist(), data.test_y.bincount().tolist()) == ([7, 7], [3, 3])
    again = load("folder", {"path": str(path), "test": 0.3, "image_size": 4, "channels": 1})
    assert torch.equal(data.test_x, again.test_x)


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"a.png": png(pixels(1, 3, 4, 4)[0])}, "has no images in class folders"),
        (images("train/a"), "has train; it needs both train and test"),
        (images("train/a", "test/a", "test/b"), "the classes b have test images and none to train on"),
        (images("train/a", "other/a", "test/a"), "has images outside of train and test and test and train"),
        (
            {**images("a"), "a/x.png": b"no image"},
            "a/x.png: is no whole image (of no kind that Pillow knows); get it again",
        ),
        ({**images("a"), "a/x.png": png(pixels(1, 3, 9, 6)[0])}, "x.png is 3 x 9 x 6 and "),
    ],
)
def test_what_is_wrong_in_a_folder_is_told(tmp_path, files, part):
    path = originals.put(tmp_path / "d", files)
    with pytest.raises(Refused) as caught:
        load("folder", {"path": str(path)})
    assert part in str(caught.value) and " at 0x" not in str(caught.value)


def test_options_of_a_folder_are_checked(tmp_path):
    for options, part in (
        ({}, "folder needs the option 'path'"),
        ({"path": str(tmp_path / "no")}, "there is no such file or folder"),
        ({"path": str(tmp_path), "channels": 2}, "channels=2 must be 3 .* or 1"),
        ({"path": str(tmp_path), "size": 2}, "folder has no option 'size'"),
    ):
        with pytest.raises(Refused, match=part):
            load("folder", options)


def test_npz_of_arrays_and_of_medmnist(tmp_path):
    x, test_x = pixels(5, 6, 6, 3), pixels(2, 6, 6, 3, seed=1)
    y, test_y = np.arange(5)[:, None], np.array([4, 0])
    np.savez(tmp_path / "a.npz", x=x, y=y, test_x=test_x, test_y=test_y)
    names = {"train_images": x, "train_labels": y, "test_images": test_x, "test_labels": test_y}
    np.savez_compressed(tmp_path / "b.npz", **names, val_images=x, val_labels=y)
    for name in ("a", "b"):
        data = load("npz", {"path": str(tmp_path / f"{name}.npz"), "classes": 6})
        assert np.array_equal(data.x, x.transpose(0, 3, 1, 2)) and np.array_equal(data.y, y[:, 0])
        assert (data.classes, data.test_y.tolist()) == (6, [4, 0])
    table = np.linspace(0, 1, 20, dtype=np.float32).reshape(5, 4)
    np.savez(tmp_path / "t.npz", x=table, y=y, test_x=table[:2], test_y=test_y)
    assert load("npz", {"path": str(tmp_path / "t.npz")}).shape == (4,)


def test_what_is_wrong_in_an_npz_is_told(tmp_path):
    path = tmp_path / "a.npz"
    good = {"x": np.zeros((3, 4)), "y": np.arange(3), "test_x": np.zeros((3, 4)), "test_y": np.arange(3)}
    for change, part in (
        ({"y": None}, "has no field y; it has x, test_x, test_y"),
        ({"y": np.array([0, 1, {}], dtype=object)}, "field y: holds Python objects, which are not read"),
        ({"y": np.array([0, 1, 7])}, "labels are 0 to 2"),
    ):
        np.savez(path, **{key: value for key, value in {**good, **change}.items() if value is not None})
        with pytest.raises(Refused) as caught:
            load("npz", {"path": str(path), "classes": 3})
        assert part in str(caught.value)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(Refused, match="is cut short or damaged"):
        load("npz", {"path": str(path)})


def test_unknown_names_and_options_are_told():
    with pytest.raises(Refused, match="unknown data set 'cifar': did you mean cifar10"):
        load("cifar", {})
    with pytest.raises(Refused, match="cifar10 has no option 'severity': known: none"):
        load("cifar10", {"severity": 3})
    with pytest.raises(Refused, match="severity=9 must be a whole number from 1 to 5"):
        load("cifar10c", {"severity": 9})
