"""Downloads, from a real server on this machine: resumed, checked, refused; nothing half is left under a whole name."""

import hashlib
import http.server
import threading

import numpy as np
import pytest

from holdfast.data.catalog import catalog
from holdfast.data.fetch import download
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.sets import Dataset
from holdfast.errors import Failed, Refused

BODY = np.random.default_rng(0).bytes(3_000_000)
MD5 = hashlib.md5(BODY).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    asked: list[tuple[str, str | None]]  # path and Range of every request


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves BODY; ?cut=N breaks off after N bytes, ?plain knows no ranges, /wrong has another body."""

    server: Server  # type: ignore[assignment]

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        path, _, query = self.path.partition("?")
        if path.startswith("/none"):
            self.send_error(404)
            return
        body = BODY[::-1] if path.startswith("/wrong") else BODY
        wanted = self.headers.get("Range") if "plain" not in query else None
        start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
        if start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body) - start))
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        stop = start + int(query.removeprefix("cut=")) if query.startswith("cut=") else len(body)
        self.wfile.write(body[start:stop])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    made = Server(("127.0.0.1", 0), Handler)
    made.asked = []
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def sample(server, monkeypatch):
    """An entry of one file; called with the path on the server and what is published of it."""

    def make(path="/file.bin", md5=MD5, names=("file.bin",), **facts):
        base = f"http://127.0.0.1:{server.server_port}"
        files = tuple(File(name, md5, url=f"{base}{path}", **facts) for name in names)
        layouts = (Layout("", (), Dataset.of),)
        monkeypatch.setitem(catalog(), "sample", Entry("sample", "t", "s", "l", "h", "c", layouts, files))
        return base

    return make


def held(folder):
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_download_is_whole_and_not_repeated(sample, server, tmp_path):
    sample()
    seen = []
    folder = download("sample", tmp_path, progress=lambda *said: seen.append(said))
    assert folder == tmp_path / "downloads" / "sample" and held(folder) == {"file.bin": BODY}
    assert seen[-1] == ("file.bin", len(BODY), len(BODY))
    download("sample", tmp_path)
    assert len(server.asked) == 1
    (folder / "file.bin").write_bytes(b"damaged")
    assert held(download("sample", tmp_path)) == {"file.bin": BODY}


def test_a_broken_download_is_kept_and_goes_on_from_there(sample, server, tmp_path):
    sample("/file.bin?cut=1000000")
    for had in (1_000_000, 2_000_000):
        with pytest.raises(Failed) as caught:
            download("sample", tmp_path)
        assert f"the connection ended after {had} of 3000000 bytes" in str(caught.value)
        assert "file.bin.part is kept, and the same command goes on from there" in str(caught.value)
        assert held(tmp_path) == {"file.bin.part": BODY[:had]}
    assert held(download("sample", tmp_path)) == {"file.bin": BODY}
    assert [wanted for _, wanted in server.asked] == [None, "bytes=1000000-", "bytes=2000000-"]


def test_a_server_without_ranges_starts_anew(sample, server, tmp_path):
    sample("/file.bin?cut=1000000")
    with pytest.raises(Failed):
        download("sample", tmp_path)
    sample("/file.bin?plain")
    assert held(download("sample", tmp_path)) == {"file.bin": BODY}
    assert server.asked[-1][1] == "bytes=1000000-"


def test_without_a_published_checksum_nothing_is_joined(sample, server, tmp_path):
    sample("/file.bin?cut=1000000", md5="")
    with pytest.raises(Failed):
        download("sample", tmp_path)
    sample(md5="")
    assert held(download("sample", tmp_path)) == {"file.bin": BODY}
    assert [wanted for _, wanted in server.asked] == [None, None]


def test_a_wrong_checksum_is_told_and_what_came_is_removed(sample, tmp_path):
    sample("/wrong.bin")
    with pytest.raises(Failed) as caught:
        download("sample", tmp_path)
    other = hashlib.md5(BODY[::-1]).hexdigest()
    assert f"expected md5 {MD5}, found md5 {other}; what came was removed" in str(caught.value)
    assert list(tmp_path.iterdir()) == [], "no empty folder is left"


def test_a_beginning_of_another_file_is_found_out_and_removed(sample, tmp_path):
    sample()
    part = tmp_path / "downloads" / "sample" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1_000_000)
    with pytest.raises(Failed, match="what came was removed"):
        download("sample", tmp_path)
    assert not (tmp_path / "downloads").exists()
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 4_000_000)  # longer than the file: the server answers 416
    with pytest.raises(Failed, match="what came was removed"):
        download("sample", tmp_path)
    assert held(download("sample", tmp_path)) == {"file.bin": BODY}


def test_mirrors_are_tried_in_their_order(sample, server, tmp_path):
    base = sample("/none.bin")
    with pytest.raises(Failed, match=r"none\.bin: the server says 404 Not Found"):
        download("sample", tmp_path)
    folder = download("sample", tmp_path, [f"{base}/none/", f"{base}/wrong.bin", f"{base}/mirror/"])
    assert held(folder) == {"file.bin": BODY}
    assert [path for path, _ in server.asked][1:] == ["/none/file.bin", "/wrong.bin", "/mirror/file.bin"]


def test_bad_addresses_are_refused_at_once(sample, server, tmp_path):
    sample(names=("a", "b"))
    with pytest.raises(Refused) as caught:
        download("sample", tmp_path, ["file:///etc/passwd", "ftp://x/", "http://127.0.0.1/one"])
    assert "--url 'file:///etc/passwd' is no http or https address" in caught.value.problems
    assert "--url 'http://127.0.0.1/one' must end in '/': sample has 2 files, a, b, by their names" in str(caught.value)
    assert server.asked == [] and list(tmp_path.iterdir()) == []


def test_no_network_is_told(sample, server, tmp_path):
    sample()
    server.shutdown()
    server.server_close()
    with pytest.raises(Failed) as caught:
        download("sample", tmp_path)
    assert "no connection ([Errno 111] Connection refused)" in str(caught.value)
    assert "holdfast data import PATH --name sample; --url names a mirror" in str(caught.value)
    assert held(tmp_path) == {}


def test_offline_is_respected(sample, server, tmp_path, monkeypatch):
    sample()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(Refused, match="HF_HUB_OFFLINE is set, so nothing is downloaded"):
        download("sample", tmp_path)
    assert server.asked == []


def test_what_is_not_published_at_an_address_says_how_to_get_it(tmp_path):
    with pytest.raises(Refused, match=r"pacs is not downloaded by holdfast: PACS\.zip from the page above"):
        download("pacs", tmp_path)
    with pytest.raises(Refused, match="unknown data set 'cifr10': did you mean cifar10"):
        download("cifr10", tmp_path)
