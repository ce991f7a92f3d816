"""From a copy that a user has to a data set: where copies are looked for, how they are recognised, checked and read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from holdfast.data import store
from holdfast.data.catalog import catalog
from holdfast.data.named import expression, nearest
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.tree import Tree, is_archive, tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

HUB = (("/datasets--{}/", "--"), ("/{}/", "___"))  # how the two caches of Hugging Face write owner/name
Folder = str | os.PathLike[str] | None


class Imported(NamedTuple):
    entry: Entry
    folder: Path
    meta: dict[str, Any]


def entry_of(name: str) -> Entry:
    if name not in catalog():
        raise Refused(f"unknown data set '{name}': {nearest(name, catalog())}; see holdfast data list")
    return catalog()[name]


def check_options(entry: Entry, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of the entry, those that were given among them; unknown ones and wrong values are refused."""
    unknown = [key for key in options if key not in entry.options]
    if unknown:
        raise Refused(*(f"{entry.name} has no option '{key}': {nearest(key, entry.options)}" for key in unknown))
    full = {**entry.options, **options}
    if entry.check is not None:
        entry.check(**full)
    return full


def load(name: str, options: Mapping[str, Any], data_dir: Folder = None) -> Dataset:
    """The imported copy; without one, a copy in a place where other libraries keep it, read as it is."""
    entry, base = entry_of(name), store.root(data_dir)
    full = check_options(entry, options)
    folder = store.folder_of(name, full, entry.options, base)
    if (folder / store.META).is_file():
        return store.opened(folder)
    for path in filter(is_there, places(entry, base)):
        check_archive(entry, path)
        with tree(path, archives(entry, path)) as found:
            layout = layout_of(entry, found)
            if layout is not None:
                check_inside(entry, found)
                return read(layout, found, full, base)
    raise Refused(missing(entry, options, folder, base))


def read(layout: Layout, found: Tree, options: Mapping[str, Any], base: Path) -> Dataset:
    more = {"base": partial(load, layout.base, {}, base)} if layout.base else {}
    try:
        return layout.read(found, **options, **more)
    except MemoryError:
        raise Refused(f"{found.path}: is too large for the memory of this machine") from None


def places(entry: Entry, base: Path) -> Iterator[Path]:
    """Where copies are looked for, in this order: downloads, torchvision's and the authors' names, the caches of
    Hugging Face (looked into, never filled)."""
    yield base / "downloads" / entry.name
    for place in entry.places:
        yield Path(place).expanduser() if place.startswith("~") else base / place
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    made = Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets").expanduser()
    for name in entry.hub:
        yield newest(hub / f"datasets--{name.replace('/', '--')}" / "snapshots", "*")
        yield newest(made / name.replace("/", "___"), "*/*/*")  # configuration, version, hash


def is_there(path: Path) -> bool:
    """A file, or a folder with more in it than the begin of a download; not a set that we stored."""
    if not path.is_dir() or store.is_ours(path):
        return path.is_file()
    return any(not held.name.endswith(".part") for held in path.iterdir())


def newest(folder: Path, pattern: str) -> Path:
    """The folder in it that was made last; itself where there is none."""
    found = [path for path in folder.glob(pattern) if path.is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime, default=folder)


def archives(entry: Entry, path: Path) -> tuple[str, ...]:
    """The archives of a set that are looked into where they lie in a folder."""
    return tuple({f.name for f in entry.files if is_archive(f.name)}) if path.is_dir() else ()


def layout_of(entry: Entry, found: Tree) -> Layout | None:
    return next((layout for layout in entry.layouts if layout.fits(found)), None)


def missing(entry: Entry, options: Mapping[str, Any], folder: Path, base: Path) -> str:
    """Where it was looked for and what to do."""
    there = [
        f"  {path}" + (" (there, but of no known layout)" if is_there(path) else "") for path in places(entry, base)
    ]
    lines = [f"{entry.name} is not here; looked for", f"  {folder} (imported)", *there, *ways(entry, options)]
    return "\n".join([*lines, "--data-dir or $HOLDFAST_DATA names another data folder"])


def ways(entry: Entry, options: Mapping[str, Any]) -> list[str]:
    """The commands that bring it, each with what it takes."""
    text = expression(entry.name, options)
    text = f'"{text}"' if options else text
    known = "; ".join(layout.what for layout in entry.layouts)
    lines = [f"holdfast data import PATH --name {text}", f"  from a copy that you have: {known}"]
    if any(file.url for file in entry.files):
        lines += [f"holdfast data import {text} --download", f"  downloads it; licence: {entry.licence}"]
    return [*lines, *[f"to get it: {entry.how}"] * bool(entry.how)]


def import_(
    path: str | os.PathLike[str],
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    data_dir: Folder = None,
    checked: bool = True,
    replace: bool = False,
) -> Imported:
    """Reads a copy and stores it in the data folder. Files with a published checksum must have it, if `checked`."""
    where, base = Path(path).expanduser(), store.root(data_dir)
    entry = entry_of(name) if name is not None else recognised(where)
    full = check_options(entry, options or {})
    folder = store.folder_of(entry.name, full, entry.options, base)
    store.check_target(folder, replace)
    sums = check_archive(entry, where) if checked else {}
    with tree(where, archives(entry, where)) as found:
        sums |= check_inside(entry, found) if checked and not sums else {}
        layout = layout_of(entry, found)
        if layout is None:
            known = "; ".join(f"{one.what} needs {', '.join(one.needs)}" for one in entry.layouts)
            raise Refused(f"{where}: is no copy of {entry.name} that is known: {known}")
        store.check_apart(folder, where)
        data = read(layout, found, full, base)
        about = {"options": full, "source": {"path": str(where.absolute()), "layout": layout.what, "checked": sums}}
        meta = store.save(data, folder, about, replace)
    return Imported(entry, folder, meta)


def recognised(path: Path) -> Entry:
    """The one data set that this file or folder is a copy of."""
    text = path.absolute().as_posix()
    folders = {e.name: [w.format(n.replace("/", s)) for n in e.hub for w, s in HUB] for e in catalog().values()}
    by_hub = [e for e in catalog().values() if any(folder in f"{text}/" for folder in folders[e.name])]
    if len(by_hub) == 1:
        return by_hub[0]
    by_name = [e for e in catalog().values() if path.is_file() and path.name in {file.name for file in e.files}]
    if len(by_name) == 1:
        return by_name[0]
    with tree(path) as found:
        fitting = [e for e in by_name or catalog().values() if layout_of(e, found)]
        fitting = narrowed(fitting, found)
    if not fitting and path.is_dir():
        here = {p.name for p in path.iterdir()}
        fitting = [e for e in catalog().values() if here & set(archives(e, path))]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = [e.name for e in fitting]
        raise Refused(f"{path}: could be {' or '.join(names)}; say which with --name {names[0]}")
    raise Refused(
        f"{path}: is no copy of a data set that is known; --name says which it should be (holdfast data list)"
    )


def narrowed(entries: Sequence[Entry], found: Tree) -> list[Entry]:
    """Of several that it could be, those whose published checksums it has."""
    if len(entries) < 2:
        return list(entries)
    exact = [e for e in entries if (sums := inside(e, found)) and all(one.good for one in sums)]
    return exact or list(entries)


class Compared(NamedTuple):
    """A file that is known by name: what was found and what was published."""

    where: str
    found: str  # 'md5 ...'
    expected: tuple[str, ...]

    @property
    def good(self) -> bool:
        return self.found in self.expected


def check_archive(entry: Entry, path: Path) -> dict[str, str]:
    """The checksum of an archive that is known by name, compared before anything in it is looked at."""
    known = published(entry).get(path.name, ()) if path.is_file() else ()
    if not known:
        return {}
    with open(path, "rb") as stream:
        return right(entry, [compared(str(path), stream, known)])


def check_inside(entry: Entry, found: Tree) -> dict[str, str]:
    return right(entry, inside(entry, found))


def right(entry: Entry, sums: Sequence[Compared]) -> dict[str, str]:
    """The checksums of files that have a published one; another one is refused."""
    wrong = [f"{one.where}: expected {' or '.join(one.expected)}, found {one.found}" for one in sums if not one.good]
    if wrong:
        raise Refused(
            *wrong,
            advice="it is cut short, damaged or another version: get it again; if it is meant to differ, "
            f"holdfast data import PATH --name {entry.name} --unchecked",
        )
    return {one.where: one.found for one in sums}


def published(entry: Entry) -> dict[str, list[File]]:
    """The files that have a checksum, by name; a file may have been published more than once."""
    known: dict[str, list[File]] = {}
    for file in entry.files:
        if file.md5 or file.sha256:
            known.setdefault(file.name, []).append(file)
    return known


def inside(entry: Entry, found: Tree) -> list[Compared]:
    known, sums = published(entry), []
    for name in found.names:
        if files := known.get(PurePosixPath(name).name):
            with found.raw(name) as stream:  # as it lies there, not uncompressed
                sums.append(compared(found.where(name), stream, files))
    return sums


def compared(where: str, stream: IO[bytes], files: Sequence[File]) -> Compared:
    kind = "sha256" if all(one.sha256 for one in files) else "md5"
    held = hashlib.new(kind, usedforsecurity=False)
    while piece := stream.read(1 << 20):
        held.update(piece)
    return Compared(where, f"{kind} {held.hexdigest()}", tuple(f"{kind} {getattr(one, kind)}" for one in files))
