"""The data folder: written whole or not at all, read back to the same bytes, checked again."""

import json
import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from originals import pixels

from holdfast.data import store
from holdfast.data.sets import Column, Dataset
from holdfast.errors import Failed, Refused


def small(n=40):
    x = pixels(n, 3, 8, 8)
    columns = {"user": Column(("anna", "bo"), np.arange(n) % 2, np.array([], np.int64))}
    return Dataset.of(x, np.arange(n) % 4, x[:5], np.arange(5) % 4, classes=5, name="small", columns=columns)


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_a_stored_set_comes_back_to_the_bit(tmp_path):
    data = small()
    meta = store.save(data, tmp_path / "small", {"options": {}})
    assert files(tmp_path / "small") == sorted(
        ["meta.json", "x.npy", "y.npy", "test_x.npy", "test_y.npy", "user.train.npy", "user.test.npy"]
    )
    again = store.opened(tmp_path / "small")
    for part in ("x", "y", "test_x", "test_y"):
        held, given = getattr(again, part), getattr(data, part)
        assert held.dtype == given.dtype and torch.equal(held, given)
    for key in ("name", "classes", "mean", "std", "kind", "codes", "shape"):
        assert getattr(again, key) == getattr(data, key), key
    assert again.columns["user"].names == ("anna", "bo") and again.columns["user"].train.tolist() == [0, 1] * 20
    assert len(again.columns["user"].test) == 0
    assert meta["files"]["x.npy"]["bytes"] == (tmp_path / "small" / "x.npy").stat().st_size
    assert json.loads((tmp_path / "small" / "meta.json").read_text())["files"] == meta["files"]
    assert store.problems(tmp_path / "small") == []


def test_codes_and_kinds_are_kept(tmp_path):
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    store.save(Dataset.of(x, [0, 1, 2], x, [0, 1, 2], kind="next", codes=(90,)), tmp_path / "a", {})
    again = store.opened(tmp_path / "a")
    assert (again.kind, again.codes, again.x.dtype) == ("next", (90,), torch.int16)


def test_large_samples_stay_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "LARGE", 1000)  # really 256 MiB
    store.save(small(), tmp_path / "small", {})
    data = store.opened(tmp_path / "small")
    x = np.load(tmp_path / "small" / "x.npy")
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if "small/" in line]
    assert {line.split("/")[-1] for line in mapped} == {"x.npy", "test_x.npy"}
    assert np.array_equal(data.x, x)
    data.x[0] = 7  # a copy of the page: the file stays as it is
    assert np.array_equal(np.load(tmp_path / "small" / "x.npy"), x)
    assert data.prepare(data.x[:2], torch.float32).shape == (2, 3, 8, 8)
    assert data.to("cpu").x.data_ptr() == data.x.data_ptr()


def in_child(call) -> tuple[int, str]:
    """Status and words of a forked process that calls this and ends."""
    end, begin = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            call()
            os.write(begin, b"done")
        except BaseException as error:
            os.write(begin, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(begin)
    with os.fdopen(end) as out:
        said = out.read()
    return os.waitpid(pid, 0)[1], said


@pytest.mark.parametrize("point", ["x.npy", "test_y.npy", "meta"])
def test_a_killed_import_leaves_nothing_that_looks_whole_and_the_next_one_clears_it(tmp_path, monkeypatch, point):
    folder = tmp_path / "store" / "small"
    real_written, real_moved = store.written, store.moved

    def written(path, array):
        made = real_written(path, array)
        if path.name == point:
            path.write_bytes(path.read_bytes()[:100])  # half of it on disk
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    def moved(made, target):
        if point == "meta":
            os.kill(os.getpid(), signal.SIGKILL)
        real_moved(made, target)

    monkeypatch.setattr(store, "written", written)
    monkeypatch.setattr(store, "moved", moved)
    status, _ = in_child(lambda: store.save(small(), folder, {}))
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert not folder.exists() and store.copies("small", tmp_path / "store") == []
    assert len(list((tmp_path / "store").glob(".small-*.partial"))) == 1
    monkeypatch.undo()
    store.save(small(), folder, {})
    assert os.listdir(tmp_path / "store") == ["small"] and store.problems(folder) == []


def test_what_another_import_is_writing_is_left_alone(tmp_path):
    with store.partial(tmp_path / "small", 0) as first:
        with store.partial(tmp_path / "small", 0) as second:
            assert first.is_dir() and second.is_dir() and first != second
        assert first.is_dir() and not second.exists()
    assert not first.exists()


def test_an_interrupted_import_leaves_nothing(tmp_path, monkeypatch):
    def stop(path, array):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "written", stop)
    with pytest.raises(KeyboardInterrupt):
        store.save(small(), tmp_path / "small", {})
    assert os.listdir(tmp_path) == []


def test_no_space_is_told_and_leaves_nothing(tmp_path):
    def call():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))  # x.npy needs 7,680 bytes and a header
        store.save(small(), tmp_path / "small", {})

    status, said = in_child(call)
    assert status == 0
    assert said.startswith(f"Failed: no space for {tmp_path / 'small'}: it needs 0.0 MB (File too large)"), said
    assert "nothing was left there. Make room, or name another folder with --data-dir" in said
    assert os.listdir(tmp_path) == []


def test_more_than_is_free_is_refused_before_it_is_written(tmp_path):
    with (
        pytest.raises(Failed, match="bytes are free"),
        store.told(tmp_path / "a", 10**18),
        store.partial(tmp_path / "a", 10**18),
    ):
        raise AssertionError
    assert os.listdir(tmp_path) == []


def test_replace_puts_the_new_one_in_the_place_of_the_old(tmp_path):
    store.save(small(), tmp_path / "small", {})
    with pytest.raises(Refused, match="is there already; --replace reads it anew"):
        store.save(small(8), tmp_path / "small", {})
    store.save(small(8), tmp_path / "small", {}, replace=True)
    assert os.listdir(tmp_path) == ["small"] and len(store.opened(tmp_path / "small").x) == 8


def test_damage_is_found(tmp_path):
    folder = tmp_path / "small"
    store.save(small(), folder, {})
    held = bytearray((folder / "test_x.npy").read_bytes())
    held[-1] ^= 1
    (folder / "test_x.npy").write_bytes(held)
    (problem,) = store.problems(folder)
    assert f"{folder / 'test_x.npy'}: sha256 expected " in problem and ", found " in problem
    assert store.opened(folder).name == "small"  # sizes are as they should be, and only `verify` reads everything
    (folder / "test_x.npy").write_bytes(held[:-5])
    for call in (store.opened, store.meta_at):
        with pytest.raises(Refused, match=r"test_x\.npy is not there or has another size than meta\.json says"):
            call(folder)
    (folder / "meta.json").write_text('{"format": 1')
    with pytest.raises(Refused, match=r"meta\.json: is damaged"):
        store.opened(folder)
    (folder / "meta.json").write_text('{"format": 9, "files": {}}')
    with pytest.raises(Refused, match="has the format 9; this version reads 1"):
        store.opened(folder)


def test_where_the_data_folder_is(monkeypatch, tmp_path):
    for name in ("HOLDFAST_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/anna")
    assert store.root() == Path("/home/anna/.cache/holdfast")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert store.root() == Path("/cache/holdfast")
    monkeypatch.setenv("HOLDFAST_DATA", "~/data")
    assert store.root() == Path("/home/anna/data") and store.root("/mine") == Path("/mine")


def test_each_choice_of_options_has_a_folder_of_its_own():
    names = [
        store.folder_of("pacs", options, {"image_size": 64, "test": 0.2}, Path("/d")).name
        for options in ({}, {"image_size": 64}, {"image_size": 32}, {"test": 0.1, "image_size": None}, {"test": "a/b"})
    ]
    assert names == ["pacs", "pacs", "pacs,image_size=32", "pacs,image_size=None,test=0.1", "pacs,test=a_b"]
