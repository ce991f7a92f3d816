"""Copies that a user has: found, recognised, checked against what is published, and told about where they are not."""

import hashlib
import os
from pathlib import Path

import numpy as np
import originals
import pytest
import torch
from originals import pixels

from holdfast.data.bring import import_, load, places
from holdfast.data.catalog import catalog
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.errors import Refused

SMALL = pixels(10, 3, 32, 32), np.arange(10), pixels(3, 3, 32, 32, seed=6), np.arange(3)


def test_wrong_checksums_are_told_with_the_file_and_what_was_expected(tmp_path):
    folder = originals.cifar10(tmp_path / "cifar-10-batches-py", *SMALL)
    with pytest.raises(Refused) as caught:
        import_(folder, "cifar10", data_dir=tmp_path / "store")
    assert len(caught.value.problems) == 6  # five batches and the test batch, all at once
    # torchvision/datasets/cifar.py has this md5 for data_batch_1.
    first = caught.value.problems[0]
    assert first.startswith(f"{folder}/data_batch_1: expected md5 c99cafc152244af753f735de768cd75f, found md5 ")
    assert "--unchecked" in caught.value.advice
    archive = originals.tarred(tmp_path / "cifar-10-python.tar.gz", folder)
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(Refused) as caught:  # by the checksum of the archive, before it is opened
        import_(archive, data_dir=tmp_path / "store")
    assert f"{archive}: expected md5 c58f30108f718f92721af3b95e74349a, found md5 " in str(caught.value)
    with pytest.raises(Refused, match="is cut short or damaged"):
        import_(archive, "cifar10", data_dir=tmp_path / "store", checked=False)
    assert not (tmp_path / "store").exists()


def published(tmp_path, monkeypatch):
    """An entry of the catalogue whose files have the checksums of the small copy."""
    folder = originals.cifar10(tmp_path / "there" / "cifar-10-batches-py", *SMALL)
    sums = tuple(File(p.name, hashlib.md5(p.read_bytes()).hexdigest()) for p in folder.glob("*_batch*"))
    cifar = catalog()["cifar10"]
    entry = Entry(
        "sample", "t", "s", "l", "h", "c", cifar.layouts, sums, cifar.places, ("me/sample",), options={"a": 1}
    )
    read = cifar.layouts[0].read
    layouts = tuple(Layout(one.what, one.needs, lambda tree, a: read(tree)) for one in cifar.layouts)
    object.__setattr__(entry, "layouts", layouts)
    monkeypatch.setitem(catalog(), "sample", entry)
    return folder


def test_a_copy_of_torchvision_is_read_where_it_lies_and_the_imported_one_goes_before(tmp_path, monkeypatch):
    folder = published(tmp_path, monkeypatch)
    data = load("sample", {}, folder.parent)
    assert np.array_equal(data.x, SMALL[0]) and os.listdir(folder.parent) == [folder.name], "nothing was written"
    made = import_(folder, "sample", data_dir=folder.parent)
    assert len(made.meta["source"]["checked"]) == 6 and made.folder == folder.parent / "sets" / "sample"
    for path in folder.iterdir():
        path.unlink()
    assert torch.equal(load("sample", {}, folder.parent).x, data.x)
    with pytest.raises(Refused, match="sample is not here"):
        load("sample", {"a": 2}, folder.parent)


def test_a_damaged_copy_of_torchvision_is_refused(tmp_path, monkeypatch):
    folder = published(tmp_path, monkeypatch)
    with open(folder / "data_batch_4", "r+b") as file:
        file.seek(-400, 2)
        file.write(b"\0")
    with pytest.raises(Refused, match=r"data_batch_4: expected md5 .* found md5"):
        load("sample", {}, folder.parent)


def test_the_cache_of_the_hub_is_looked_into(tmp_path, monkeypatch):
    hub = tmp_path / "hf" / "hub" / "datasets--uoft-cs--cifar10" / "snapshots"
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    for age, name in ((100, "old"), (0, "new")):
        for part, images, labels in (("train", *SMALL[:2]), ("test", *SMALL[2:])):
            rows = {"img": originals.as_rows(images[:2]), "label": [int(n) for n in labels[:2]]}
            if name == "old":
                rows = {"img": rows["img"], "label": [9, 9]}
            originals.parquet(hub / name / "plain_text" / f"{part}-00000-of-00001.parquet", rows)
        now = hub.stat().st_mtime
        os.utime(hub / name, (now - age, now - age))
    data = load("cifar10", {}, tmp_path / "empty")
    assert np.array_equal(data.x, SMALL[0][:2]) and data.y.tolist() == [0, 1]
    # Without a name the hub's own folder says which set it is.
    assert import_(hub / "new", data_dir=tmp_path / "store").entry.name == "cifar10"


def test_the_cache_of_datasets_is_looked_into(tmp_path, monkeypatch):
    folder = tmp_path / "hf" / "datasets" / "uoft-cs___cifar10" / "plain_text" / "0.0.0" / "c2d84"
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)
    x, y, test_x, test_y = SMALL
    for part, images, labels in (("train", x, y), ("test", test_x, test_y)):
        rows = {"img": originals.as_rows(images), "label": [int(n) for n in labels]}
        originals.arrow(folder / f"cifar10-{part}.arrow", rows)
    data = load("cifar10", {}, tmp_path / "empty")
    assert np.array_equal(data.x, x) and np.array_equal(data.test_x, test_x) and data.test_y.tolist() == [0, 1, 2]
    assert import_(folder, data_dir=tmp_path / "store").entry.name == "cifar10"
    (folder / "cifar10-test.arrow").write_bytes(b"nothing")
    with pytest.raises(Refused, match=r"cifar10-test\.arrow: is no whole table"):
        load("cifar10", {}, tmp_path / "empty")


def test_a_missing_set_says_where_it_was_looked_for_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "PACS").mkdir()
    (tmp_path / "PACS" / "readme").write_text("no images")
    with pytest.raises(Refused) as caught:
        load("pacs", {"image_size": 32}, tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[:2] == ["pacs is not here; looked for", f"  {tmp_path}/sets/pacs,image_size=32 (imported)"]
    assert f"  {tmp_path}/PACS (there, but of no known layout)" in lines
    assert f"  {tmp_path}/hf/hub/datasets--flwrlabs--pacs/snapshots" in lines
    assert 'holdfast data import PATH --name "pacs(image_size=32)"' in lines
    assert not any("--download" in line for line in lines), "nobody publishes it at a fixed address"
    with pytest.raises(Refused, match="holdfast data import cifar100 --download"):
        load("cifar100", {}, tmp_path)


def test_which_set_a_copy_is(tmp_path):
    x, y = pixels(3, 28, 28), np.arange(3)
    idx = originals.mnist(tmp_path / "raw", x, y, x, y)
    with pytest.raises(Refused, match=r"could be fashion_mnist or mnist.*; say which with --name fashion_mnist"):
        import_(idx, data_dir=tmp_path / "store")
    stl = originals.stl10(tmp_path / "s", pixels(2, 3, 96, 96), [0, 1], pixels(1, 3, 96, 96), [2])
    assert import_(stl, data_dir=tmp_path / "store", checked=False).entry.name == "stl10"
    (tmp_path / "x.bin").write_bytes(b"?")
    with pytest.raises(Refused, match="is no copy of a data set that is known"):
        import_(tmp_path / "x.bin", data_dir=tmp_path / "store")


def test_every_entry_of_the_catalogue_is_whole():
    assert len(catalog()) >= 22
    for entry in catalog().values():
        assert all((entry.title, entry.samples, entry.licence, entry.home, entry.layouts)), entry.name
        assert entry.cite.startswith("@") and entry.cite.count("{") == entry.cite.count("}"), entry.name
        assert any(file.url for file in entry.files) or entry.how, f"{entry.name}: how does one get it?"
        assert next(places(entry, Path("/d"))) == Path(f"/d/downloads/{entry.name}")
        for file in entry.files:
            assert len(file.md5) in (0, 32) and len(file.sha256) in (0, 64), file
        if entry.check is not None:
            entry.check(**entry.options)
