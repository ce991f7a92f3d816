"""Archives that are not what they should be: paths that lead out, sizes that lie, objects."""

import io
import tarfile
import zipfile
import zlib

import numpy as np
import pytest

from holdfast.data.readers import tree as trees
from holdfast.data.readers.tree import tree
from holdfast.errors import Refused


def add(archive, name, data=b"x", **facts):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in facts.items():
        setattr(info, key, value)
    archive.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "a/../../evil", "..\\evil"])
@pytest.mark.parametrize("form", ["zip", "tar"])
def test_paths_that_lead_out_are_refused(tmp_path, name, form):
    path = tmp_path / f"a.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w") as out:
            out.writestr(name, "x")
    else:
        with tarfile.open(path, "w") as out:
            add(out, name)
    with pytest.raises(Refused, match="which leads out of it; it is refused as hostile"), tree(path):
        pass
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_devices_of_a_tar_are_no_files(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as out:
        add(out, "link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")
        add(out, "hard", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")
        add(out, "pipe", b"", type=tarfile.FIFOTYPE)
        add(out, "./sub/file", b"data")
    with tree(tmp_path / "a.tar") as found:
        assert found.names == ["sub/file"] and found.read("sub/file") == b"data"


def test_sizes_beyond_all_real_ones_are_refused(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("zeros", bytes(50 << 20))
        out.writestr("more", bytes(50 << 20))
    assert (tmp_path / "bomb.zip").stat().st_size < 200_000
    monkeypatch.setattr(trees, "LARGEST_FILE", 40 << 20)  # the real limits are GiB
    with pytest.raises(Refused, match=f"zeros would be {50 << 20} bytes; more than"), tree(tmp_path / "bomb.zip"):
        pass
    monkeypatch.setattr(trees, "LARGEST_FILE", 60 << 20)
    monkeypatch.setattr(trees, "LARGEST_TREE", 80 << 20)
    with pytest.raises(Refused, match=f"2 files of {100 << 20} bytes in all"), tree(tmp_path / "bomb.zip"):
        pass
    with tarfile.open(tmp_path / "many.tar", "w") as out:
        for k in range(30):
            add(out, str(k))
    monkeypatch.setattr(trees, "MOST_FILES", 20)
    with pytest.raises(Refused, match="21 files of 21 bytes"), tree(tmp_path / "many.tar"):
        pass


def test_a_zip_that_lies_about_a_size_gives_no_more_than_it_says(tmp_path):
    """A member that says 10 bytes and unpacks to 10 MB."""
    path = tmp_path / "lie.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("a", bytes(10_000_000))
    held = path.read_bytes().replace((10_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(held)
    with tree(path) as found, pytest.raises(Refused, match=r"lie.zip/a: is cut short or damaged \(Bad CRC-32"):
        found.read("a")


def test_a_zip_with_a_password_is_told(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("a", b"data")
    held = bytearray((tmp_path / "a.zip").read_bytes())
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):  # the flags of both headers; bit 0 says encrypted
        held[held.index(mark) + place] |= 1
    (tmp_path / "a.zip").write_bytes(held)
    with tree(tmp_path / "a.zip") as found, pytest.raises(Refused, match=r"a\.zip/a: cannot be read .*password"):
        found.read("a")


def test_a_gz_that_does_not_end_is_refused(tmp_path):
    packer = zlib.compressobj(wbits=31)
    (tmp_path / "a.gz").write_bytes(packer.compress(bytes(5_000_000)) + packer.flush())
    with tree(tmp_path / "a.gz") as found, pytest.raises(Refused, match="holds more than 1000000 bytes"):
        found.read("a.gz", 1_000_000)


def test_an_array_file_may_not_promise_more_than_it_holds(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": (10**12,)})
    (tmp_path / "a.npy").write_bytes(buffer.getvalue() + b"1234")
    with tree(tmp_path / "a.npy") as found, pytest.raises(Refused, match=r"of shape \(1000000000000,\), and the file"):
        found.array("a.npy")
    (tmp_path / "b.npy").write_bytes(b"no array")
    with tree(tmp_path / "b.npy") as found, pytest.raises(Refused, match="is no whole array file"):
        found.array("b.npy")
    for array in (np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(3), np.zeros((0, 4))):
        np.save(tmp_path / "c.npy", array)
        with tree(tmp_path / "c.npy") as found:
            assert np.array_equal(found.array("c.npy"), array) and found.array("c.npy").shape == array.shape


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz", "tar.xz", "tgz"])
def test_what_is_no_archive_is_told(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(b"<html>moved</html>" * 100)
    with pytest.raises(Refused, match=rf"a.{ending}: is cut short or damaged"), tree(path):
        pass
    with pytest.raises(Refused, match="there is no such file or folder"), tree(tmp_path / "none"):
        pass


def test_a_truncated_tar_gz_is_told_where_it_is_read(tmp_path):
    data = np.random.default_rng(0).bytes(100_000)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as out:
        add(out, "first", data)
        add(out, "second", data)
    whole = (tmp_path / "a.tar.gz").read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Refused, match=r"a\.tar\.gz"), tree(tmp_path / "a.tar.gz") as found:
        found.read("first")


def test_an_image_of_absurd_size_is_refused_before_it_is_decoded(tmp_path):
    from PIL import Image

    from holdfast.data.readers.pictures import decoded

    out = io.BytesIO()
    Image.new("1", (9000, 9000)).save(out, "PNG")
    with pytest.raises(Refused, match="is 9000 x 9000; more than"):
        decoded(out.getvalue(), "big.png")
