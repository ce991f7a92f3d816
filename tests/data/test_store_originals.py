"""What a user has is never lost: an import removes nothing but what an import wrote."""

import os
import shutil

import pytest
from originals import pixels, png, put
from test_store import small

from holdfast.data import store
from holdfast.data.bring import import_, load
from holdfast.errors import Refused

IMAGES = {
    f"{domain}/dog/{k}.png": png(pixels(1, 3, 9, 9, seed=k)[0])
    for domain in ("art_painting", "cartoon", "photo", "sketch")
    for k in range(5)
}


def held(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", ["pacs", "PACS", "downloads/pacs"])
def test_originals_in_the_data_folder_outlive_every_import(tmp_path, monkeypatch, place):
    """`pacs` is the name of the set and also a place where raw copies are looked for."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    raw = put(tmp_path / place, IMAGES)
    before = held(raw)
    for replace in (False, True, True):
        made = import_(raw, "pacs", {"image_size": 8}, tmp_path, replace=replace)
        assert held(raw) == before and made.folder == tmp_path / "sets" / "pacs,image_size=8"
    assert load("pacs", {"image_size": None}, tmp_path).shape == (3, 9, 9), "read from the raw copy"
    import_(raw, "pacs", {}, tmp_path)
    shutil.rmtree(raw)
    with pytest.raises(Refused) as caught:
        load("pacs", {"image_size": None}, tmp_path)
    assert "of no known layout" not in str(caught.value)


@pytest.mark.parametrize("inside", [{}, {"meta.json": "{}"}, {"meta.json": "{}", "train/meta.json": "{}"}])
def test_replace_refuses_a_folder_that_no_import_wrote(tmp_path, inside):
    folder = put(tmp_path / "small", {"photo.png": b"mine", **inside})
    before = held(folder)
    with pytest.raises(Refused, match=r"so holdfast did not write it and does not replace it; move it elsewhere"):
        store.save(small(), folder, {}, replace=True)
    assert held(folder) == before and os.listdir(tmp_path) == ["small"]


def test_replace_refuses_a_file_and_a_link(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    store.save(small(), tmp_path / "other", {})
    (tmp_path / "link").symlink_to(tmp_path / "other")
    for name in ("file", "link"):
        with pytest.raises(Refused, match="is no folder of a stored set, so"):
            store.save(small(), tmp_path / name, {}, replace=True)
    assert (tmp_path / "file").read_bytes() == b"mine" and store.problems(tmp_path / "link") == []


def test_a_damaged_set_is_still_ours_to_replace(tmp_path):
    store.save(small(), tmp_path / "small", {})
    (tmp_path / "small" / "meta.json").write_text("{")
    store.save(small(8), tmp_path / "small", {}, replace=True)
    assert len(store.opened(tmp_path / "small").x) == 8


def test_a_copy_and_the_place_of_the_set_lie_apart(tmp_path):
    target = tmp_path / "store" / "sets" / "pacs"
    for raw in (target / "raw", target, tmp_path):
        put(raw, IMAGES)
        before = held(tmp_path)
        with pytest.raises(Refused, match=r"one lies inside the other|so holdfast did not write it"):
            import_(raw, "pacs", {}, tmp_path / "store", replace=True)
        assert held(tmp_path) == before
        shutil.rmtree(tmp_path / "store", ignore_errors=True)


def test_a_link_does_not_hide_that_a_copy_lies_in_the_place_of_the_set(tmp_path):
    put(tmp_path / "store" / "sets" / "pacs" / "raw", IMAGES)
    (tmp_path / "link").symlink_to(tmp_path / "store" / "sets" / "pacs" / "raw")
    with pytest.raises(Refused):
        import_(tmp_path / "link", "pacs", {}, tmp_path / "store", replace=True)
    assert len(held(tmp_path / "store")) == len(IMAGES)


def test_an_import_that_lies_where_imports_once_lay_is_used_and_replaced_there(tmp_path):
    raw = put(tmp_path / "raw", IMAGES)
    new = import_(raw, "pacs", {}, tmp_path / "store").folder
    old = tmp_path / "store" / "pacs"
    new.rename(old)
    assert store.copies("pacs", tmp_path / "store") == [old]
    assert load("pacs", {}, tmp_path / "store").shape == (3, 64, 64)
    with pytest.raises(Refused, match="is there already; --replace"):
        import_(raw, "pacs", {}, tmp_path / "store")
    assert import_(raw, "pacs", {}, tmp_path / "store", replace=True).folder == old
    with pytest.raises(Refused) as caught:  # another choice of options is not taken for a copy of no known layout
        load("pacs", {"image_size": 8}, tmp_path / "store")
    assert "of no known layout" not in str(caught.value)


def test_what_comes_into_the_place_while_a_set_is_read_is_left(tmp_path, monkeypatch):
    written = store.written

    def slow(path, array):
        put(tmp_path / "small", {"mine.txt": b"mine"})
        return written(path, array)

    monkeypatch.setattr(store, "written", slow)
    with pytest.raises(Refused):
        store.save(small(), tmp_path / "small", {}, replace=True)
    assert held(tmp_path) == {"small/mine.txt": b"mine"}
