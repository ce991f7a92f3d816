"""A folder, a zip, a tar or a single file, seen as names and bytes. Archives are read in place, never extracted."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import math
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import numpy as np

from holdfast.errors import Refused

# Above these sizes an archive is refused as broken or hostile. The largest real ones: STL-10 (unlabeled_X.bin 2.6 GiB,
# 3 GiB in all), CIFAR-10-C (2.7 GiB), LEAF's FEMNIST as images (805,263 files).
LARGEST_FILE = 4 << 30
LARGEST_TREE = 16 << 30
MOST_FILES = 2_000_000

BROKEN = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)


class Member(NamedTuple):
    size: int
    open: Callable[[], IO[bytes]]


class Tree:
    """Files by their path inside, '/' between folders; `where` is how messages name one."""

    def __init__(self, path: Path, members: Mapping[str, Member]):
        self.path, self.members = path, members

    @property
    def names(self) -> list[str]:
        return sorted(self.members)

    def find(self, pattern: str) -> list[str]:
        """The names that match: '*/train/*.json'; '|' parts alternatives; sorted."""
        return [name for name in self.names if matches(name, pattern)]

    def has(self, pattern: str) -> bool:
        return any(matches(name, pattern) for name in self.members)

    def one(self, pattern: str) -> str:
        """The only name that matches."""
        found = self.find(pattern)
        if len(found) != 1:
            many = f"has {len(found)}: {', '.join(found[:3])}, ..." if found else "has none"
            raise Refused(f"{self.path}: one file {pattern.lstrip('*/')} is needed, and it {many}")
        return found[0]

    def where(self, name: str) -> str:
        """How a message names a file of it."""
        return str(self.path) if name == self.path.name and not self.path.is_dir() else f"{self.path}/{name}"

    def size(self, name: str) -> int:
        return self.members[name].size

    @contextlib.contextmanager
    def raw(self, name: str) -> Iterator[IO[bytes]]:
        """The file as it lies there. What is broken in it is refused with its name."""
        where = self.where(name)
        try:
            stream = self.members[name].open()
        except (RuntimeError, NotImplementedError) as error:  # zipfile's words for a password, a rare compression
            raise Refused(f"{where}: cannot be read ({error})") from error
        except BROKEN as error:
            raise cut(where, error) from error
        with broken(where), stream:
            yield stream

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """The file as a stream; a .gz is uncompressed."""
        with self.raw(name) as stream:
            if not name.endswith(".gz"):
                yield stream
                return
            with gzip.open(stream) as plain:
                yield plain  # type: ignore[misc]

    def read(self, name: str, most: int = LARGEST_FILE) -> bytes:
        """All bytes, of which there may be no more than `most`."""
        with self.open(name) as stream:
            held = stream.read(most + 1)
        if len(held) > most:
            raise Refused(f"{self.where(name)}: holds more than {most} bytes, which no file of this kind does")
        return held

    def text(self, name: str, encoding: str = "utf-8") -> str:
        try:
            return self.read(name).decode(encoding)
        except UnicodeDecodeError as error:
            raise Refused(f"{self.where(name)}: is no {encoding} text ({error.reason} at byte {error.start})") from None

    def array(self, name: str) -> np.ndarray:
        """A .npy file."""
        with self.open(name) as stream:
            return npy(stream, self.size(name), self.where(name))

    def rows(self, name: str, start: int, stop: int, shape: tuple[int, ...]) -> np.ndarray:
        """Some rows of a .npy file of bytes that must have this shape; the others are not kept."""
        with self.open(name) as stream:
            where, whole = self.where(name), Header.of(stream, self.size(name), self.where(name))
            if whole.dtype != np.uint8 or whole.shape != shape or whole.fortran:
                raise Refused(f"{where}: holds {whole.dtype} of shape {whole.shape}; it should be uint8 of {shape}")
            row = int(np.prod(shape[1:]))
            stream.seek(start * row, 1)
            held = stream.read((stop - start) * row)
        if len(held) != (stop - start) * row:
            raise Refused(f"{where}: ends before row {stop} of {shape[0]}; get it again")
        return np.frombuffer(held, np.uint8).reshape(stop - start, *shape[1:])

    def arrays(self, name: str, wanted: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
        """The arrays of an .npz file, or those `wanted` of them, all of which it must have."""
        with self.open(name) as stream:
            inside = opened_zip(zipfile.ZipFile(stream), self.where(name))
            held = {key.removesuffix(".npy"): member for key, member in inside.items()}
            missing = [key for key in wanted if key not in held]
            if missing:
                raise Refused(
                    f"{self.where(name)}: has no field {' and no field '.join(missing)}; it has {', '.join(held)}"
                )
            told = f"{self.where(name)}: field"
            return {
                key: npy(m.open(), m.size, f"{told} {key}") for key, m in held.items() if not wanted or key in wanted
            }


def matches(name: str, pattern: str) -> bool:
    return any(fnmatchcase(f"/{name}", one) for one in pattern.split("|"))


@contextlib.contextmanager
def broken(where: str) -> Iterator[None]:
    """What goes wrong in a file that was cut short or is something else, as one refusal."""
    try:
        yield
    except BROKEN as error:
        raise cut(where, error) from error


def cut(where: str, error: Exception) -> Refused:
    return Refused(f"{where}: is cut short or damaged ({str(error) or type(error).__name__}); get it again")


class Header(NamedTuple):
    """What a .npy file says of itself; it may not promise more than the file holds, and objects are not read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    bytes: int

    @classmethod
    def of(cls, stream: IO[bytes], size: int, where: str) -> Header:
        try:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(stream)
        except (ValueError, TypeError, SyntaxError) as error:
            raise Refused(f"{where}: is no whole array file ({error})") from None
        if dtype.hasobject:
            raise Refused(f"{where}: holds Python objects, which are not read")
        count = math.prod(shape) * dtype.itemsize
        if min((0, *shape)) < 0 or count > min(size, LARGEST_FILE):
            raise Refused(f"{where}: its header says {dtype} of shape {shape}, and the file has {size} bytes")
        return cls(shape, dtype, fortran, count)


def npy(stream: IO[bytes], size: int, where: str) -> np.ndarray:
    """An array of numbers."""
    head = Header.of(stream, size, where)
    held = stream.read(head.bytes)
    if len(held) != head.bytes:
        raise Refused(f"{where}: ends after {len(held)} of {head.bytes} bytes; get it again")
    return np.frombuffer(held, head.dtype).reshape(head.shape, order="F" if head.fortran else "C")


@contextlib.contextmanager
def tree(path: Path, inside: tuple[str, ...] = ()) -> Iterator[Tree]:
    """What is at this path; in a folder, archives of the names `inside` are looked into as if they were folders."""
    with contextlib.ExitStack() as stack:
        if path.is_dir():
            members = _folder(path)
            for name in [n for n in members if PurePosixPath(n).name in inside and is_archive(n)]:
                nested = _archive(path / name, stack)
                members |= {f"{name}/{key}": member for key, member in nested.items()}
        elif path.is_file():
            members = _archive(path, stack) if is_archive(path.name) else {path.name: _file(path)}
        else:
            raise Refused(f"{path}: there is no such file or folder")
        yield Tree(path, members)


def is_archive(name: str) -> bool:
    return name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2"))


def _file(path: Path) -> Member:
    return Member(path.stat().st_size, lambda: open(path, "rb"))


def _folder(path: Path) -> dict[str, Member]:
    return {p.relative_to(path).as_posix(): _file(p) for p in path.rglob("*") if p.is_file()}


def _archive(path: Path, stack: contextlib.ExitStack) -> dict[str, Member]:
    with broken(str(path)):
        if path.name.lower().endswith(".zip"):
            return opened_zip(stack.enter_context(zipfile.ZipFile(path)), str(path))
        return _opened_tar(stack.enter_context(tarfile.open(path)), str(path))


def opened_zip(archive: zipfile.ZipFile, where: str) -> dict[str, Member]:
    kept = [info for info in archive.infolist() if not info.is_dir()]
    check_names({info.filename: info.file_size for info in kept}, where)
    return {info.filename: Member(info.file_size, lambda info=info: archive.open(info)) for info in kept}


def _opened_tar(archive: tarfile.TarFile, where: str) -> dict[str, Member]:
    kept: list[tarfile.TarInfo] = []
    for info in archive:  # one by one, so that an endless one ends at the limit
        kept += [info] if info.isreg() else []  # links and devices are no data
        if len(kept) > MOST_FILES:
            break
    check_names({info.name: info.size for info in kept}, where)

    def opener(info: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
        return lambda: archive.extractfile(info) or io.BytesIO()

    return {info.name.removeprefix("./"): Member(info.size, opener(info)) for info in kept}


def check_names(sizes: Mapping[str, int], where: str) -> None:
    """Nothing is written under these names; an archive that has such ones is none of those that we know."""
    outside = [n for n in sizes if n.startswith(("/", "\\")) or ".." in PurePosixPath(n.replace("\\", "/")).parts]
    if outside:
        raise Refused(f"{where}: holds the path {outside[0]!r}, which leads out of it; it is refused as hostile")
    large = [(name, size) for name, size in sizes.items() if size > LARGEST_FILE]
    if large:
        raise Refused(f"{where}: {large[0][0]} would be {large[0][1]} bytes; more than {LARGEST_FILE} is refused")
    if len(sizes) > MOST_FILES or sum(sizes.values()) > LARGEST_TREE:
        raise Refused(
            f"{where}: {len(sizes)} files of {sum(sizes.values())} bytes in all; more than {MOST_FILES} files or "
            f"{LARGEST_TREE} bytes is refused"
        )


def told(value: Any, most: int = 60) -> str:
    """A value of a file, short enough for a message."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."
