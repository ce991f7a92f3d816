"""Downloads, when they are asked for: resumed, checked, and under their name only when whole."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.data import store
from holdfast.data.bring import Folder, entry_of, published
from holdfast.data.readers.entry import Entry, File
from holdfast.errors import Failed, Refused

MOST = 16 << 30  # no file of the catalogue has as many bytes
PIECE = 1 << 20
WAIT = 30  # seconds without a byte
Progress = Callable[[str, int, int], None]  # name, bytes had, bytes in all (0: not said)


def silent(name: str, had: int, whole: int) -> None:
    """No progress."""


def download(name: str, data_dir: Folder = None, urls: Sequence[str] = (), progress: Progress = silent) -> Path:
    """Fetches the files of a set into `downloads/NAME` of the data folder, and returns that folder.

    `urls` are mirrors: a folder's address, ending in '/', that has the files by their names; or the address of the
    only file.
    """
    entry = entry_of(name)
    wanted = {file.name: file for file in entry.files if file.url}
    check(entry, wanted, urls)
    home = store.root(data_dir) / "downloads"
    folder = home / name
    with store.folders(folder, home):
        for file in wanted.values():
            target = folder / file.name
            if not target.is_file() or wrong(target, entry):
                whole(entry, file, target, [mirrored(url, file) for url in urls] or [file.url], progress)
    return folder


def check(entry: Entry, wanted: dict[str, File], urls: Sequence[str]) -> None:
    if not wanted:
        raise Refused(f"{entry.name} is not downloaded by holdfast: {entry.how or entry.home}")
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        raise Refused("HF_HUB_OFFLINE is set, so nothing is downloaded; unset it, or import a copy that you have")
    problems = [
        f"--url {url!r} is no http or https address" for url in urls if urlsplit(url).scheme not in ("http", "https")
    ]
    if len(wanted) > 1:
        problems += [
            f"--url {url!r} must end in '/': {entry.name} has {len(wanted)} files, {', '.join(wanted)}, by their names"
            for url in urls
            if not url.endswith("/")
        ]
    if problems:
        raise Refused(*problems)


def mirrored(url: str, file: File) -> str:
    return url + file.name if url.endswith("/") else url


def whole(entry: Entry, file: File, target: Path, urls: Sequence[str], progress: Progress) -> None:
    """The file from the first address that gives it."""
    part, problems = target.with_name(f"{target.name}.part"), []
    for url in urls:
        try:
            fetched(url, file, part, bool(published(entry).get(file.name)), progress)
        except (Failed, OSError, http.client.HTTPException) as error:
            problems.append(reason(url, error))
            continue
        found = wrong(part, entry, file.name)
        if not found:
            os.replace(part, target)
            return
        part.unlink()
        problems.append(f"{url}: {found}; what came was removed")
    kept = f" {part} is kept, and the same command goes on from there." if part.is_file() else ""
    raise Failed(
        f"{file.name} was not downloaded: {'; '.join(problems)}.{kept} Or get it elsewhere and give it to "
        f"holdfast data import PATH --name {entry.name}; --url names a mirror"
    )


def reason(url: str, error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{url}: the server says {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return f"{url}: no connection ({error.reason})"
    if isinstance(error, OSError) and error.errno in store.FULL:
        return f"{url}: no space ({error.strerror})"
    return str(error) if isinstance(error, Failed) else f"{url}: {type(error).__name__} {error}"


def wrong(path: Path, entry: Entry, name: str = "") -> str:
    """How the file differs from all that were published under its name; empty if it does not."""
    known = published(entry).get(name or path.name, [])
    found: set[str] = set()
    for file in known:
        kind = "sha256" if file.sha256 else "md5"
        with open(path, "rb") as stream:
            held = hashlib.file_digest(stream, kind).hexdigest()
        if held == getattr(file, kind):
            return ""
        found.add(f"expected {kind} {getattr(file, kind)}, found {kind} {held}")
    return "; ".join(sorted(found))


def fetched(url: str, file: File, part: Path, checked: bool, progress: Progress) -> None:
    """The bytes into NAME.part. What is there is kept only where a checksum will tell whether the two ends fit."""
    had = part.stat().st_size if checked and part.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": f"holdfast/{__version__}"})
    if had:
        request.add_header("Range", f"bytes={had}-")
    try:
        answer = urllib.request.urlopen(request, timeout=WAIT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and had:  # nothing lies beyond: whole already, or of another file; the checksum tells
            return
        raise
    with answer:
        if answer.status != 206 or begin(answer) != had:
            had = 0  # the server sends all of it
        size = had + int(answer.headers.get("Content-Length") or 0)
        room_for(part, size - had)
        with open(part, "ab" if had else "wb") as out:
            got = copied(answer, out, had, lambda bytes_: progress(file.name, bytes_, size))
    if size > had and got != size:
        raise Failed(f"{url}: the connection ended after {got} of {size} bytes")


def begin(answer: Any) -> int:
    """The first byte of a partial answer: 'bytes 1000-4999/5000'."""
    said = answer.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0]
    return int(said) if said.isdigit() else -1


def room_for(part: Path, size: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if size > MOST:
        raise Failed(f"{part.name.removesuffix('.part')}: the server offers {size} bytes; more than {MOST} is refused")
    if size > free:
        raise Failed(f"no space in {part.parent}: {size / 1e6:,.1f} MB are needed and {free / 1e6:,.1f} MB are free")


def copied(answer: Any, out: IO[bytes], had: int, progress: Callable[[int], None]) -> int:
    """Piece by piece; how far it came, also when the connection broke off."""
    got = had
    with contextlib.suppress(http.client.IncompleteRead):  # told by its length
        while piece := answer.read1(PIECE):
            out.write(piece)
            got += len(piece)
            if got > MOST:
                raise Failed(f"it does not end: more than {MOST} bytes is refused")
            progress(got)
    return got
