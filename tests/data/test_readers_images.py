"""The readers of image sets, on small copies in the original layouts that the tests write themselves.

Expected values are the arrays that went into a copy; what the layouts are is stated by their authors' readmes.
"""

import io
import pickle

import numpy as np
import originals
import pytest
import torch
from originals import pixels

from holdfast.data.bring import import_
from holdfast.data.readers.tree import tree
from holdfast.data.store import opened
from holdfast.errors import Refused


@pytest.fixture
def bring(tmp_path):
    """A copy, imported and opened again."""

    def call(path, name, checked=False, **options):
        return opened(import_(path, name, options, tmp_path / "store", checked=checked).folder)

    return call


def refused(call, *args, **options):
    with pytest.raises(Refused) as caught:
        call(*args, **options)
    return str(caught.value)


def same(data, x, y, test_x, test_y):
    for held, given in zip((data.x, data.test_x), (x, test_x), strict=True):
        assert held.dtype == torch.uint8 and np.array_equal(held.numpy(), given)
    for held, given in zip((data.y, data.test_y), (y, test_y), strict=True):
        assert held.dtype == torch.int64 and held.tolist() == list(given)


SMALL = pixels(20, 3, 32, 32), np.arange(20) % 10, pixels(7, 3, 32, 32, seed=6), np.arange(7)


@pytest.mark.parametrize("form", ["folder", "tar.gz", "zip"])
def test_cifar10_pickles(bring, tmp_path, form):
    folder = originals.cifar10(tmp_path / "cifar-10-batches-py", *SMALL)
    path = folder
    if form == "tar.gz":
        path = originals.tarred(tmp_path / "cifar-10-python.tar.gz", folder)
    if form == "zip":
        path = originals.zipped(tmp_path / "c.zip", {f"c/{p.name}": p.read_bytes() for p in folder.iterdir()})
    data = bring(path, "cifar10")
    same(data, *SMALL)
    assert (data.classes, data.shape, data.kind, data.columns) == (10, (3, 32, 32), "classes", {})
    means = SMALL[0].astype(np.float64).mean((0, 2, 3))
    assert data.mean == pytest.approx(means, rel=1e-8)


def test_cifar10_pickles_of_python_3_and_of_protocol_4(bring, tmp_path):
    folder = originals.cifar10(tmp_path / "c", *SMALL)
    for protocol, path in zip((0, 1, 2, 3, 4, 5), sorted(folder.glob("*_batch*")), strict=True):
        held = pickle.loads(path.read_bytes(), encoding="bytes")
        path.write_bytes(pickle.dumps({key.decode(): value for key, value in held.items()}, protocol))
    same(bring(folder, "cifar10"), *SMALL)


class Hostile:
    def __init__(self, call, *args):
        self.call, self.args = call, args

    def __reduce__(self):
        return self.call, self.args


def test_a_hostile_pickle_is_refused_and_nothing_of_it_runs(bring, tmp_path):
    import codecs
    import os

    folder = originals.cifar10(tmp_path / "c", *SMALL)
    mark = tmp_path / "ran"
    good = (folder / "data_batch_3").read_bytes()
    for call, args, word in (
        (os.system, (f"touch {mark}",), "system"),
        (exec, (f"open({str(mark)!r}, 'w')",), "exec"),
        (codecs.encode, ("a", "rot13"), "codec"),
        (np.load, (str(mark),), "load"),
    ):
        held = {**pickle.loads(good, encoding="bytes"), b"more": Hostile(call, *args)}
        (folder / "data_batch_3").write_bytes(pickle.dumps(held, 2))
        message = refused(bring, folder, "cifar10")
        assert f"{folder}/data_batch_3: is no pickle of plain arrays and was not read" in message and word in message
        assert not mark.exists()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda held: held.pop(b"labels"), "has no field labels; it has batch_label, data, filenames"),
        (lambda held: held.update({b"data": held[b"data"][:, :-1]}), "uint8 (4, 3071); it should be uint8 (n, 3072)"),
        (lambda held: held.update({b"labels": held[b"labels"][:-1]}), "has 4 images and 3 labels"),
        (lambda held: held.update({b"labels": [0, 1, "a", 2]}), "should be a list of whole numbers"),
        (lambda held: held.update({b"labels": [0, 1, 10, 2]}), "labels are 0 to 9"),
    ],
)
def test_what_is_wrong_in_a_batch_is_told(bring, tmp_path, change, part):
    folder = originals.cifar10(tmp_path / "c", *SMALL)
    path = folder / "data_batch_2"
    held = pickle.loads(path.read_bytes(), encoding="bytes")
    change(held)
    path.write_bytes(originals.python2(held))
    assert part in refused(bring, folder, "cifar10")
    path.write_bytes(path.read_bytes()[:3000])
    assert f"{path}: is no pickle of plain arrays" in refused(bring, folder, "cifar10")


def test_cifar10_binary_records(bring, tmp_path):
    x, y, test_x, test_y = SMALL
    folder = tmp_path / "cifar-10-batches-bin"
    parts = zip(np.array_split(x, 5), np.array_split(y, 5), strict=True)
    records = {f"data_batch_{k}.bin": part for k, part in enumerate(parts, 1)}
    for name, (images, labels) in {**records, "test_batch.bin": (test_x, test_y)}.items():
        rows = [bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True)]
        originals.put(folder, {name: b"".join(rows)})
    same(bring(folder, "cifar10"), *SMALL)
    (folder / "test_batch.bin").write_bytes(b"12345")
    message = refused(import_, folder, "cifar10", {}, tmp_path / "other")
    assert "test_batch.bin: has 5 bytes, no multiple of 3073" in message


def test_cifar100_has_its_coarse_classes_as_a_column(bring, tmp_path):
    x, fine, test_x, test_fine = pixels(6, 3, 32, 32), [99, 0, 1, 2, 3, 4], pixels(2, 3, 32, 32, seed=1), [7, 99]
    coarse, test_coarse = [13, 4, 1, 14, 8, 0], [19, 13]
    folder = originals.cifar100(tmp_path / "cifar-100-python", x, fine, coarse, test_x, test_fine, test_coarse)
    data = bring(folder, "cifar100")
    same(data, x, fine, test_x, test_fine)
    column = data.columns["coarse"]
    assert (column.train.tolist(), column.test.tolist()) == (coarse, test_coarse)
    # The first and last superclass of the archive's `meta`; 19 is 'vehicles_2'.
    assert (column.names[0], column.names[19], len(column.names)) == ("aquatic_mammals", "vehicles_2", 20)


def test_cifar100_binary_has_the_coarse_label_first(bring, tmp_path):
    image = pixels(1, 3, 32, 32)
    record = bytes([13, 99]) + image.tobytes()
    data = bring(originals.put(tmp_path / "b", {"train.bin": record, "test.bin": record}), "cifar100")
    same(data, image, [99], image, [99])
    assert data.columns["coarse"].train.tolist() == [13]


def test_parquet_of_the_hub(bring, tmp_path):
    x, y, test_x, test_y = SMALL
    folder = tmp_path / "snap" / "plain_text"
    for part, images, labels in (("train", x, y), ("test", test_x, test_y)):
        half = len(images) // 2
        for k, rows in enumerate((slice(None, half), slice(half, None))):
            columns = {"img": originals.as_rows(images[rows]), "label": [int(n) for n in labels[rows]]}
            originals.parquet(folder / f"{part}-{k:05}-of-00002.parquet", columns)
    same(bring(folder.parent, "cifar10"), *SMALL)
    originals.parquet(folder / "test-00000-of-00002.parquet", {"img": originals.as_rows(x[:1]), "lable": [1]})
    message = refused(import_, folder, "cifar10", {}, tmp_path / "other")
    assert "has no field label; it has img, lable" in message


@pytest.mark.parametrize("ending", [".gz", ""])
def test_mnist_idx(bring, tmp_path, ending):
    x, y, test_x, test_y = pixels(9, 28, 28), np.arange(9), pixels(3, 28, 28, seed=2), [9, 0, 5]
    folder = originals.mnist(tmp_path / "MNIST" / "raw", x, y, test_x, np.asarray(test_y), ending)
    same(bring(folder, "mnist"), x[:, None], y, test_x[:, None], test_y)
    assert bring(folder, "fashion_mnist").name == "fashion_mnist"


def test_what_is_wrong_in_an_idx_file_is_told(bring, tmp_path):
    x = pixels(3, 28, 28)
    folder = originals.mnist(tmp_path / "raw", x, np.arange(3), x, np.arange(3))
    images = folder / "train-images-idx3-ubyte.gz"
    whole = images.read_bytes()
    images.write_bytes(whole[:-20])
    assert f"{images}: is cut short or damaged" in refused(bring, folder, "mnist")
    originals.idx(folder / "t10k-labels-idx1-ubyte.gz", np.arange(2))
    images.write_bytes(whole)
    assert "test_x has 3 samples but test_y has 2 labels" in refused(bring, folder, "mnist")
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(originals.gzip.compress(b"\0\0\x08\1\0\0\0\4ab"))
    assert "should hold 4 bytes (4,) and holds 2" in refused(bring, folder, "mnist")


def test_stl10_is_turned_upright_and_its_labels_begin_at_one(bring, tmp_path):
    x, y, test_x, test_y = pixels(5, 3, 96, 96), [0, 9, 4, 1, 1], pixels(2, 3, 96, 96, seed=3), [9, 0]
    folder = originals.stl10(tmp_path / "stl10_binary", x, y, test_x, test_y)
    data = bring(originals.tarred(tmp_path / "stl10_binary.tar.gz", folder), "stl10")
    same(data, x, y, test_x, test_y)
    (folder / "test_X.bin").write_bytes((folder / "test_X.bin").read_bytes()[:-1])
    message = refused(import_, folder, "stl10", {}, tmp_path / "other", checked=False)
    assert "test_X.bin: has 55295 bytes, which is 1.99996 images, and there are 2 labels" in message
    (folder / "train_y.bin").write_bytes(bytes([0, 1, 2, 3, 4]))
    assert "holds labels 0 to 4; they should be 1 to 10" in refused(
        import_, folder, "stl10", {}, tmp_path / "other", checked=False
    )


def tiny():
    """Two classes in the wrong order of their ids, a grey image among them."""
    images = {key: image for key, image in zip("abcd", pixels(4, 3, 64, 64), strict=True)}
    jpegs = {key: originals.png(image, "JPEG") for key, image in images.items()}
    grey = originals.png(pixels(1, 64, 64), "JPEG")
    return {
        "tiny-imagenet-200/train/n02/images/n02_0.JPEG": jpegs["a"],
        "tiny-imagenet-200/train/n01/images/n01_0.JPEG": jpegs["b"],
        "tiny-imagenet-200/train/n01/images/n01_1.JPEG": grey,
        "tiny-imagenet-200/train/n01/n01_boxes.txt": "n01_0.JPEG\t0\t0\t1\t1",
        "tiny-imagenet-200/val/images/val_0.JPEG": jpegs["c"],
        "tiny-imagenet-200/val/images/val_1.JPEG": jpegs["d"],
        "tiny-imagenet-200/val/val_annotations.txt": "val_1.JPEG\tn01\t0\t0\t1\t1\nval_0.JPEG\tn02\t0\t0\t1\t1\n",
        "tiny-imagenet-200/test/images/test_0.JPEG": jpegs["a"],
        "tiny-imagenet-200/wnids.txt": "n02\nn01\n",
    }


def as_read(jpeg):
    """A JPEG as pillow decodes it, [3, h, w]."""
    return np.asarray(originals.Image.open(io.BytesIO(jpeg)).convert("RGB")).transpose(2, 0, 1)


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_tiny_imagenet_takes_the_validation_classes_from_their_list(bring, tmp_path, form):
    files = tiny()
    path = originals.put(tmp_path, files) / "tiny-imagenet-200"
    if form == "zip":
        path = originals.zipped(tmp_path / "tiny-imagenet-200.zip", files)
    data = bring(path, "tiny_imagenet")
    assert (data.classes, data.y.tolist(), data.test_y.tolist()) == (2, [0, 0, 1], [1, 0])
    assert np.array_equal(data.x[2], as_read(files["tiny-imagenet-200/train/n02/images/n02_0.JPEG"]))
    assert np.array_equal(data.test_x[0], as_read(files["tiny-imagenet-200/val/images/val_0.JPEG"]))
    assert torch.equal(data.x[1, 0], data.x[1, 1]) and torch.equal(data.x[1, 0], data.x[1, 2])  # the grey one


def test_tiny_imagenet_regrouped_and_with_a_missing_line(bring, tmp_path):
    files = tiny()
    list_ = "tiny-imagenet-200/val/val_annotations.txt"
    regrouped = {name.replace("val/images/val_0", "val/n02/val_0").replace("val/images/val_1", "val/n01/val_1"): data
                 for name, data in files.items() if name != list_}  # fmt: skip
    data = bring(originals.put(tmp_path / "a", regrouped), "tiny_imagenet")
    assert data.test_y.tolist() == [0, 1]  # n01/val_1, then n02/val_0
    broken = originals.put(tmp_path / "b", {**files, list_: "val_1.JPEG\tn01\t0\t0\t1\t1\n"})
    message = refused(import_, broken, "tiny_imagenet", {}, tmp_path / "other")
    assert "val_0.JPEG: has no line in val_annotations.txt (1 such images)" in message


def pacs(sizes=lambda k: 20):
    """Five images of each of two classes in each domain."""
    files = {}
    for place, domain in enumerate(("art_painting", "cartoon", "photo", "sketch")):
        for label in ("dog", "person"):
            for k in range(5):
                image = pixels(1, 3, sizes(k), sizes(k), seed=place * 10 + k)[0]
                files[f"PACS/{domain}/{label}/pic_{k:03}.png"] = originals.png(image)
    return files


def test_pacs_has_domains_and_holds_out_a_share_of_each_class_of_each(bring, tmp_path):
    data = bring(originals.zipped(tmp_path / "PACS.zip", pacs()), "pacs", image_size=None)
    # Five a class and domain and a fifth held out: four to train and one to test.
    assert (len(data.x), len(data.test_x), data.shape, data.classes) == (32, 8, (3, 20, 20), 7)
    column = data.columns["domain"]
    assert column.names == ("art_painting", "cartoon", "photo", "sketch")
    assert np.bincount(column.train).tolist() == [8] * 4 and np.bincount(column.test).tolist() == [2] * 4
    assert data.test_y.tolist() == [0, 6] * 4  # dog is 0 and person 6 of the seven
    whole = {image.numpy().tobytes() for image in torch.cat([data.x, data.test_x])}
    assert whole == {pixels(1, 3, 20, 20, seed=p * 10 + k).tobytes() for p in range(4) for k in range(5)}
    again = bring(originals.put(tmp_path, pacs()) / "PACS", "pacs", image_size=8)
    assert again.shape == (3, 8, 8) and torch.equal(again.test_y, data.test_y)


def test_images_of_mixed_sizes_are_refused_unless_resized(bring, tmp_path):
    folder = originals.put(tmp_path, pacs(lambda k: 20 + k)) / "PACS"
    message = refused(bring, folder, "pacs", image_size=None)
    assert "pic_001.png is 3 x 21 x 21 and " in message and "image_size=64 resizes them all" in message
    assert bring(folder, "pacs").shape == (3, 64, 64)
    assert "image_size=0 must be" in refused(bring, folder, "pacs", image_size=0)
    assert "test=1 must be a share" in refused(bring, folder, "pacs", test=1)
    originals.put(folder, {"photo/cat/a.png": originals.png(pixels(1, 3, 4, 4)[0])})
    assert "'cat' is none of the classes dog" in refused(bring, folder, "pacs", image_size=9)


HAM = "lesion_id,image_id,dx,dx_type,age,sex,localization,dataset\n"


def ham():
    """Ten lesions of two images each: nevi of two sources."""
    lines = [
        f"HAM_{k:02},ISIC_{2 * k + j:02},{'nv' if k % 2 else 'mel'},histo,50,male,back,"
        f"{'rosendahl' if k < 5 else 'vienna_dias'}\n"
        for k in range(10)
        for j in range(2)
    ]
    return HAM + "".join(lines)


def test_ham10000_has_sources_and_keeps_the_images_of_a_lesion_together(bring, tmp_path):
    images = {f"ISIC_{k:02}.jpg": originals.png(pixels(1, 3, 12, 16, seed=k)[0], "JPEG") for k in range(20)}
    folder = originals.put(tmp_path / "ham", {"HAM10000_metadata": ham()})
    originals.zipped(folder / "HAM10000_images_part_1.zip", dict(list(images.items())[:9]))
    originals.zipped(folder / "HAM10000_images_part_2.zip", dict(list(images.items())[9:]))
    data = bring(folder, "ham10000", image_size=10, test=0.5)
    assert (data.classes, data.shape, len(data.x) + len(data.test_x)) == (7, (3, 10, 10), 20)
    assert set(data.y.tolist()) == {4, 5}  # mel and nv in alphabetical order of the seven
    lesion, domain = data.columns["lesion"], data.columns["domain"]
    assert not set(lesion.train) & set(lesion.test)
    assert domain.names == ("rosendahl", "vidir_modern", "vidir_molemax", "vienna_dias")
    assert set(domain.train) == set(domain.test) == {0, 3}
    assert [lesion.names[k] for k in sorted(set(lesion.train) | set(lesion.test))] == [f"HAM_{k:02}" for k in range(10)]


def test_what_is_wrong_in_ham10000_is_told(bring, tmp_path):
    image = originals.png(pixels(1, 3, 4, 4)[0], "JPEG")
    files = {"HAM10000_metadata.csv": ham(), "part_1/ISIC_00.jpg": image}
    folder = originals.put(tmp_path / "ham", files)
    assert "19 images of the metadata are not there, the first is ISIC_01.jpg" in refused(bring, folder, "ham10000")
    originals.put(folder, {"HAM10000_metadata.csv": ham().replace(",dataset\n", ",source\n")})
    assert "has no field dataset; Kaggle's copy has no 'dataset'" in refused(bring, folder, "ham10000")
    originals.put(folder, {"HAM10000_metadata.csv": ham().replace("nv", "NV")})
    assert "line 4: dx is 'NV', none of akiec" in refused(bring, folder, "ham10000")


def medmnist(path, channels=3, **changes):
    shape = (28, 28, 3) if channels == 3 else (28, 28)
    parts = {"train": 6, "val": 3, "test": 2}
    arrays = {f"{part}_images": pixels(n, *shape, seed=n) for part, n in parts.items()}
    arrays |= {f"{part}_labels": (np.arange(n)[:, None] % 8).astype(np.uint8) for part, n in parts.items()}
    arrays = {key: value for key, value in {**arrays, **changes}.items() if value is not None}
    np.savez(path, **arrays)
    return arrays


def test_medmnist_has_the_official_parts(bring, tmp_path):
    path = tmp_path / "bloodmnist.npz"
    held = medmnist(path)
    data = bring(path, "bloodmnist")
    x, val, test_x = (held[f"{part}_images"].transpose(0, 3, 1, 2) for part in ("train", "val", "test"))
    same(data, x, [0, 1, 2, 3, 4, 5], test_x, [0, 1])
    more = bring(path, "bloodmnist", validation="train")
    same(more, np.concatenate([x, val]), [0, 1, 2, 3, 4, 5, 0, 1, 2], test_x, [0, 1])
    grey = medmnist(tmp_path / "pneumoniamnist.npz", 1, train_labels=np.zeros((6, 1), int))
    data = bring(tmp_path / "pneumoniamnist.npz", "pneumoniamnist")
    same(data, grey["train_images"][:, None], [0] * 6, grey["test_images"][:, None], [0, 1])


@pytest.mark.parametrize(
    ("name", "changes", "part"),
    [
        ("bloodmnist", {"val_labels": None}, "has no field val_labels; it has train_images"),
        ("bloodmnist", {"train_labels": np.zeros((6, 14), int)}, "shape (6, 14); it should be (n, 1)"),
        ("bloodmnist", {"test_labels": np.full((2, 1), 8)}, "labels are 0 to 7"),
        ("bloodmnist", {"test_images": np.zeros((2, 28, 28, 3))}, "float64 (2, 28, 28, 3); it should be uint8"),
        ("bloodmnist", {"train_images": pixels(6, 64, 64, 3)}, "(3, 64, 64) but test_x of (3, 28, 28)"),
        ("chestmnist", {}, "any number of 14 findings; holdfast has no multi-label task"),
    ],
)
def test_what_is_wrong_in_medmnist_is_told(bring, tmp_path, name, changes, part):
    medmnist(tmp_path / f"{name}.npz", **changes)
    assert part in refused(bring, tmp_path / f"{name}.npz", name)


def test_medmnist_refuses_an_unknown_use_of_the_validation_part(bring, tmp_path):
    medmnist(tmp_path / "bloodmnist.npz")
    message = refused(bring, tmp_path / "bloodmnist.npz", "bloodmnist", validation="test")
    assert "validation='test' must be 'leave'" in message


def test_an_entry_that_does_not_fit_says_what_it_needs(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    message = refused(import_, tmp_path, "stl10", {}, tmp_path / "store")
    assert "is no copy of stl10 that is known" in message and "*/train_X.bin" in message
    with tree(tmp_path) as found:
        assert found.names == ["notes.txt"]
