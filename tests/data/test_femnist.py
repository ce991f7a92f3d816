"""FEMNIST from files in LEAF's and TFF's layouts, small ones made here and the sample in ../shared/data."""

import io
import json
import tarfile

import numpy as np
import pytest
from loaded import digest, loaded, refused
from shared import needs_shared, unpacked

from holdfast.errors import Refused

DECIMALS = np.array([repr(v / 255) for v in range(256)], dtype=object)  # as Python's json writes them


def leaf_file(path, users):
    """{user: (images [n, 28, 28] uint8, labels)} -> a file as LEAF's data_to_json.py writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = []
    for name, (x, y) in users.items():
        rows = ", ".join(f"[{', '.join(DECIMALS[image.reshape(-1)])}]" for image in x)
        data.append(f'{json.dumps(name)}: {{"x": [{rows}], "y": {json.dumps([int(v) for v in y])}}}')
    many = [len(y) for _, y in users.values()]
    path.write_text(
        f'{{"users": {json.dumps(list(users))}, "num_samples": {many}, "user_data": {{{", ".join(data)}}}}}'
    )


def some(seed=0, sizes=(5, 1, 2, 20)):
    """A few writers with random images."""
    rng = np.random.default_rng(seed)
    return {
        f"f{i:04}_0{i}": (rng.integers(256, size=(n, 28, 28), dtype=np.uint8), rng.integers(62, size=n))
        for i, n in enumerate(sizes)
    }


def split_set(folder, seed=0):
    train, test = some(seed), {name: (x[:1], y[:1]) for name, (x, y) in some(seed + 1).items()}
    leaf_file(folder / "train" / "all_data_0_niid_0_keep_0_train_9.json", dict(list(train.items())[:3]))
    leaf_file(folder / "train" / "all_data_1_niid_0_keep_0_train_9.json", dict(list(train.items())[3:]))
    leaf_file(folder / "test" / "all_data_0_niid_0_keep_0_test_9.json", test)
    return train, test


def test_leaf_split_files_come_out_as_they_went_in(tmp_path):
    train, test = split_set(tmp_path / "data")
    data = loaded("femnist", tmp_path, paper="white")
    assert data.x.shape == (28, 1, 28, 28) and data.test_x.shape == (4, 1, 28, 28) and data.classes == 62
    assert np.array_equal(data.x[:, 0].numpy(), np.concatenate([x for x, _ in train.values()]))
    assert data.y.tolist() == [int(v) for _, y in train.values() for v in y]
    writer = data.columns["writer"]
    assert writer.names == tuple(train)
    assert writer.train.tolist() == [0] * 5 + [1] + [2] * 2 + [3] * 20 and writer.test.tolist() == [0, 1, 2, 3]
    assert np.array_equal(data.test_x[:, 0].numpy(), np.concatenate([x for x, _ in test.values()]))
    black = loaded("femnist", tmp_path)
    assert np.array_equal(black.x.numpy(), 255 - data.x.numpy()) and black.y.equal(data.y)


def test_leaf_whole_set_is_split_within_writers(tmp_path):
    held = some()
    leaf_file(tmp_path / "all_data" / "all_data_0.json", held)
    leaf_file(tmp_path / "sampled_data" / "all_data_0_niid.json", some(5))  # LEAF leaves its other folders there
    data = loaded("femnist", tmp_path, paper="white")
    writer = data.columns["writer"]
    # max(1, int(.9 n)) of 5, 2, 20 are 4, 1, 18; the writer of one image is left out (LEAF's split_data.py).
    assert writer.names == ("f0000_00", "f0002_02", "f0003_03")
    assert np.bincount(writer.train).tolist() == [4, 1, 18] and np.bincount(writer.test).tolist() == [1, 1, 2]
    for i, name in enumerate(writer.names):
        parts = np.concatenate([data.x[writer.train == i].numpy(), data.test_x[writer.test == i].numpy()])
        assert sorted(map(digest, parts[:, 0])) == sorted(map(digest, held[name][0]))
    again, other = (loaded("femnist", tmp_path, paper="white", seed=seed) for seed in (0, 1))
    assert digest(again.x) == digest(data.x) != digest(other.x)
    assert np.bincount(loaded("femnist", tmp_path, share=0.5).columns["writer"].train).tolist() == [2, 1, 10]


def test_tff_files_are_one_minus_value(tmp_path):
    h5py = pytest.importorskip("h5py")
    held = some(sizes=(3, 4))
    for part in ("train", "test"):
        with h5py.File(tmp_path / f"fed_emnist_{part}.h5", "w") as file:
            for name, (x, y) in held.items():
                file[f"examples/{name}/pixels"] = (1 - x / 255).astype(np.float32)  # x: 255 is ink
                file[f"examples/{name}/label"] = y.astype(np.int32)
    data = loaded("femnist", tmp_path)
    assert np.array_equal(data.x[:, 0].numpy(), np.concatenate([x for x, _ in held.values()]))
    assert data.columns["writer"].train.tolist() == [0] * 3 + [1] * 4
    white = loaded("femnist", tmp_path, paper="white")
    assert np.array_equal(white.test_x.numpy(), 255 - data.test_x.numpy())
    with tarfile.open(tmp_path / "fed_emnist.tar.bz2", "w:bz2") as archive:
        for part in ("train", "test"):
            archive.add(tmp_path / f"fed_emnist_{part}.h5", f"fed_emnist_{part}.h5")
    assert digest(loaded("femnist", tmp_path / "fed_emnist.tar.bz2").x) == digest(data.x)
    with h5py.File(tmp_path / "fed_emnist_test.h5", "a") as file:
        del file["examples/f0001_01/label"]
    assert "fed_emnist_test.h5, writer f0001_01: has no field label; it has pixels" in refused("femnist", tmp_path)
    whole = (tmp_path / "fed_emnist_train.h5").read_bytes()
    (tmp_path / "fed_emnist_train.h5").write_bytes(whole[: len(whole) // 2])
    assert "fed_emnist_train.h5: is no whole HDF5 file" in refused("femnist", tmp_path)


@needs_shared
def test_the_leaf_sample(tmp_path):
    held = unpacked("femnist_leaf_sample")
    for part, number in (("train", 0), ("test", 1)):
        chosen = [(w, np.flatnonzero((held["split"] == number) & (held["writer"] == w))) for w in range(190)]
        chosen = [(w, rows) for w, rows in chosen if len(rows)]
        for start in range(0, len(chosen), 50):  # files of 50 writers
            users = {str(held["writers"][w]): (held["x"][r], held["y"][r]) for w, r in chosen[start : start + 50]}
            leaf_file(tmp_path / part / f"all_data_{start // 50}_{part}_9.json", users)
    data = loaded("femnist", tmp_path, paper="white")
    writer = data.columns["writer"]
    # ../shared/data/README.md: 105 writers with 14,640 images to train, 190 in all, 18,810 images.
    assert (len(data.x), len(data.x) + len(data.test_x), len(writer.names)) == (14640, 18810, 190)
    assert len(np.unique(writer.train)) == 105 and len(np.unique(writer.test)) == 190
    assert sorted(writer.names) == sorted(map(str, held["writers"]))
    for x, y, who, number in ((data.x, data.y, writer.train, 0), (data.test_x, data.test_y, writer.test, 1)):
        own = np.flatnonzero(held["split"] == number)
        own = own[np.argsort(held["writer"][own], kind="stable")]
        assert np.array_equal(x[:, 0].numpy(), held["x"][own]) and np.array_equal(y.numpy(), held["y"][own])
        assert [writer.names[i] for i in who] == held["writers"][held["writer"][own]].tolist()
    # Of the bytes that the reader gave on 2026-11-19, which the lines above found equal to the sample's own.
    assert (digest(data.x), digest(data.test_x)) == ("217e5311b6c0fb5f", "6b188516abcf66f4")


def broken(change):
    """The small set with one file changed."""

    def write(folder):
        split_set(folder)
        path = folder / "train" / "all_data_0_niid_0_keep_0_train_9.json"
        held = json.loads(path.read_text())
        path.write_text(change(held) or json.dumps(held))

    return write


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: json.dumps(held)[:5000], "train_9.json: is no whole JSON file"),
        (lambda held: "[" * 100_000, "train_9.json: is no whole JSON file"),
        (lambda held: "[1, 2]", "has no field users and no field user_data of LEAF's form; it is [1, 2]"),
        (
            lambda held: held.pop("user_data") and None,
            "has no field user_data of LEAF's form; it has users, num_samples",
        ),
        (
            lambda held: held["user_data"].pop("f0001_01") and None,
            "user 'f0001_01' is listed in users and has no user_data",
        ),
        (lambda held: held["user_data"]["f0000_00"].pop("y") and None, "user f0000_00: has no field y"),
        (lambda held: held["user_data"]["f0000_00"]["y"].pop() and None, "has 5 samples x and 4 labels y"),
        (lambda held: held["user_data"]["f0000_00"]["x"][2].pop() and None, "has an image of 783 numbers"),
        (
            lambda held: held["user_data"]["f0000_00"]["x"].__setitem__(1, "a"),
            "has an image that is no list of numbers",
        ),
        (lambda held: held["user_data"]["f0000_00"]["x"][1].__setitem__(7, "a"), "has pixels that are no numbers"),
        (lambda held: held["user_data"]["f0000_00"]["x"][1].__setitem__(7, 12.0), "has the pixel np.float64(12.0)"),
        (lambda held: held["user_data"]["f0000_00"]["x"][1].__setitem__(7, float("nan")), "has the pixel"),
        (lambda held: held["user_data"]["f0000_00"]["y"].__setitem__(1, 62), "label 62 is none of 0 to 61 (1 of them)"),
        (lambda held: held["user_data"]["f0000_00"]["y"].__setitem__(1, 1.5), "label 1.5 is none of 0 to 61"),
    ],
)
def test_what_is_wrong_in_a_leaf_file_is_told(tmp_path, change, said):
    broken(change)(tmp_path)
    message = refused("femnist", tmp_path)
    assert "all_data_0_niid_0_keep_0_train_9.json" in message and said in message


def test_what_is_wrong_around_the_files_is_told(tmp_path):
    split_set(tmp_path / "a")
    assert "share=0.5 cannot be chosen" in refused("femnist", tmp_path, share=0.5)
    assert "paper='grey' is neither 'white'" in refused("femnist", tmp_path, paper="grey")
    split_set(tmp_path / "b")
    assert "lies in several folders (a/train, b/train): give the folder of one data set" in refused("femnist", tmp_path)
    leaf_file(tmp_path / "c" / "train" / "all_data_0_train_9.json", some())
    assert "has LEAF's train files and not its other part" in refused("femnist", tmp_path / "c")
    leaf_file(tmp_path / "d" / "all_data_0.json", some())
    message = refused("femnist", tmp_path / "d", share=1.0, seed=-1)
    assert "share=1.0 is no share" in message and "seed=-1 is no whole number" in message
    leaf_file(tmp_path / "e" / "all_data_0.json", {})
    with pytest.raises(Refused, match="x is empty"):
        loaded("femnist", tmp_path / "e")


def parquet_file(path, held, change=None):
    """flwrlabs/femnist: image {bytes, path}, writer_id, character; the writers' rows mixed."""
    arrow = pytest.importorskip("pyarrow")
    images = pytest.importorskip("PIL.Image")
    rows = [(name, x[i], int(y[i])) for name, (x, y) in held.items() for i in range(len(y))]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    files = []
    for _, image, _ in rows:
        png = io.BytesIO()
        images.fromarray(image).save(png, "PNG")
        files.append({"bytes": png.getvalue(), "path": None})
    table = {"image": files, "writer_id": [name for name, _, _ in rows], "character": [y for *_, y in rows]}
    if change:
        change(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(table), path)
    return rows


def test_flowers_parquet_is_split_within_writers(tmp_path):
    held = some(sizes=(5, 1, 600, 500))  # more than the 1,000 rows of a batch
    rows = parquet_file(tmp_path / "data" / "train-00000-of-00001.parquet", held)
    data = loaded("femnist", tmp_path, paper="white")
    writer = data.columns["writer"]
    assert sorted(writer.names) == ["f0000_00", "f0002_02", "f0003_03"] and data.x.shape[1:] == (1, 28, 28)
    for i, name in enumerate(writer.names):
        own = [(digest(x), y) for n, x, y in rows if n == name]
        found = [(digest(data.x[j, 0]), int(data.y[j])) for j in np.flatnonzero(writer.train == i)]
        found += [(digest(data.test_x[j, 0]), int(data.test_y[j])) for j in np.flatnonzero(writer.test == i)]
        assert sorted(found) == sorted(own) and sum(writer.train == i) == int(0.9 * len(own))


def test_what_is_wrong_in_the_parquet_is_told(tmp_path):
    path = tmp_path / "train-0.parquet"
    parquet_file(path, some(), lambda table: table.update(character=[62] * 28))
    assert "label 62 is none of 0 to 61" in refused("femnist", tmp_path)
    parquet_file(path, some(), lambda table: table.pop("writer_id"))
    assert "train-0.parquet: has no field writer_id" in refused("femnist", tmp_path)
    parquet_file(path, some(), lambda table: table.update(image=["a"] * 28))
    assert "its image 'a' holds no bytes of an image" in refused("femnist", tmp_path)
    parquet_file(path, {"w": (np.zeros((3, 28, 30), np.uint8), [1, 2, 3])})
    assert "has an image of shape (1, 28, 30)" in refused("femnist", tmp_path)
    path.write_bytes(path.read_bytes()[:-50])
    assert "train-0.parquet: is no whole table" in refused("femnist", tmp_path)
