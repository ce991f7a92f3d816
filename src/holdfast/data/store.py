"""The data folder: every imported set as plain arrays with a meta.json, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast import __version__
from holdfast.data.columns import Column
from holdfast.data.readers.room import LARGE
from holdfast.data.sets import Dataset
from holdfast.errors import Failed, Refused

FORMAT = 1
PARTS = ("x", "y", "test_x", "test_y")
META = "meta.json"
SETS = "sets"  # the folder of what we store: raw copies lie beside it, under the names of other libraries
WRITTEN = re.compile(r"meta\.json|(x|y|test_x|test_y|.+\.(train|test))\.npy")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def root(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Where data sets lie: what was asked for, else $HOLDFAST_DATA, else the user's cache folder."""
    asked = data_dir or os.environ.get("HOLDFAST_DATA")
    if asked:
        return Path(asked).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "holdfast"


def folder_of(name: str, options: Mapping[str, Any], defaults: Mapping[str, Any], base: Path) -> Path:
    """Where a set with these options is stored: options that have their default value are not in the name."""
    other = {key: value for key, value in sorted(options.items()) if value != defaults.get(key)}
    said = "".join(f",{key}={re.sub(r'[^A-Za-z0-9_.+-]', '_', str(value))}" for key, value in other.items())
    new, old = base / SETS / f"{name}{said}", base / f"{name}{said}"
    return old if is_ours(old) and not new.exists() else new  # imports once lay among the raw copies


def copies(name: str, base: Path) -> list[Path]:
    """The stored folders of a set, one for each choice of options."""
    new, old = ([home / name, *sorted(home.glob(f"{name},*"))] for home in (base / SETS, base))
    return [path for path in new if (path / META).is_file()] + [path for path in old if is_ours(path)]


def foreign(folder: Path) -> str:
    """What shows that a folder is not one that `save` wrote; empty if nothing does."""
    if not folder.is_dir() or folder.is_symlink():
        return "is no folder of a stored set"
    held = {path.name: path for path in folder.iterdir()}
    if META not in held:
        return f"has no {META}"
    other = sorted(name for name, path in held.items() if not WRITTEN.fullmatch(name) or not path.is_file())
    return f"holds {', '.join(other[:3])}" if other else ""


def is_ours(folder: Path) -> bool:
    return not foreign(folder)


def check_target(folder: Path, replace: bool) -> None:
    """Nothing but a stored set is ever replaced."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not replace:
        raise Refused(f"{folder} is there already; --replace reads it anew")
    if reason := foreign(folder):
        raise Refused(f"{folder} {reason}, so holdfast did not write it and does not replace it; move it elsewhere")


def check_apart(folder: Path, source: Path) -> None:
    """A copy that is read does not lie where the set is written, nor the other way round."""
    here, there = folder.resolve(), source.resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise Refused(
            f"{source} would be stored as {folder}, and one lies inside the other; give the set's own file or folder, "
            "or another data folder by --data-dir"
        )


def save(data: Dataset, folder: Path, about: Mapping[str, Any], replace: bool = False) -> dict[str, Any]:
    """Writes beside the folder and renames when everything is on disk; returns what meta.json says."""
    check_target(folder, replace)
    arrays = arrays_of(data)
    need = sum(array.nbytes for array in arrays.values())
    with told(folder, need), folders(folder.parent), partial(folder, need) as made:
        files = {f"{key}.npy": written(made / f"{key}.npy", array) for key, array in arrays.items()}
        meta = {**meta_of(data), **about, "files": files}
        with open(made / META, "x", encoding="utf-8") as file:
            json.dump(meta, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        check_target(folder, replace)  # what came there meanwhile
        moved(made, folder)
    return meta


def arrays_of(data: Dataset) -> dict[str, np.ndarray]:
    held = {part: getattr(data, part).numpy() for part in PARTS}
    for name, column in data.columns.items():
        held |= {f"{name}.train": np.asarray(column.train), f"{name}.test": np.asarray(column.test)}
    return held


def meta_of(data: Dataset) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "holdfast": __version__,
        "name": data.name,
        "classes": data.classes,
        "mean": data.mean,
        "std": data.std,
        "kind": data.kind,
        "codes": data.codes,
        "shape": data.shape,
        "samples": [len(data.x), len(data.test_x)],
        "columns": {name: column.names for name, column in data.columns.items()},
    }


class _Hashed:
    """A file that is hashed while it is written."""

    def __init__(self, file: Any):
        self.file, self.sha256, self.bytes = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.bytes += len(data)
        return self.file.write(data)


def written(path: Path, array: np.ndarray) -> dict[str, Any]:
    """One array file, on disk when this returns; its size and checksum."""
    with open(path, "xb") as file:
        hashed = _Hashed(file)
        np.lib.format.write_array(hashed, array, allow_pickle=False)  # piece by piece: a mapped one is never in memory
        file.flush()
        os.fsync(file.fileno())
    return {"sha256": hashed.sha256.hexdigest(), "bytes": hashed.bytes}


@contextlib.contextmanager
def folders(path: Path, own: Path | None = None) -> Iterator[None]:
    """Makes a folder and those above it; new ones, and those in `own`, are taken away again if they end empty."""
    ours = [one for one in (path, *path.parents) if not one.exists() or (own and one.is_relative_to(own))]
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        with contextlib.suppress(OSError):  # the first that is not empty
            for one in ours:
                one.rmdir()


@contextlib.contextmanager
def partial(folder: Path, need: int) -> Iterator[Path]:
    """A hidden folder beside the one to be, gone afterwards; what killed imports left there is taken away first."""
    for left in folder.parent.glob(f".{folder.name}-*.partial"):
        with contextlib.suppress(OSError), held(left):
            shutil.rmtree(left)
    free = shutil.disk_usage(folder.parent).free
    if need > free:
        raise OSError(errno.ENOSPC, f"{free} bytes are free")
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", suffix=".partial", dir=folder.parent))
    try:
        with held(made):
            made.chmod(0o755)  # mkdtemp's is for the owner alone; a data folder may be shared
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """A lock that ends with the process, so that a folder in use can be told from one left behind."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there nothing is taken away
        raise OSError("no locks here") from None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def moved(made: Path, folder: Path) -> None:
    """The finished folder under its name; one that was there is put aside first and removed after."""
    old = Path(f"{made.with_suffix('')}-old.partial")
    if folder.exists():
        os.rename(folder, old)
    os.rename(made, folder)
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def told(folder: Path, need: int) -> Iterator[None]:
    """A full disk, in words."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise Failed(
            f"no space for {folder}: it needs {need / 1e6:,.1f} MB ({error.strerror}); nothing was left there. Make "
            "room, or name another folder with --data-dir or $HOLDFAST_DATA"
        ) from None


def meta_at(folder: Path) -> dict[str, Any]:
    """What meta.json says; refused if it is none of ours or an array file has another size."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        known = meta["format"] == FORMAT
        sizes = {str(name): int(about["bytes"]) for name, about in meta["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{folder / META}: is damaged ({type(error).__name__}: {error}); import the set again") from None
    if not known:
        raise Refused(f"{folder / META}: has the format {meta['format']}; this version reads {FORMAT}. {AGAIN}")
    wrong = [name for name, size in sizes.items() if not is_size(folder / name, size)]
    if wrong:
        raise Refused(f"{folder}: {', '.join(wrong)} is not there or has another size than meta.json says. {AGAIN}")
    return meta


AGAIN = "Import the set again with --replace"


def is_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def opened(folder: Path) -> Dataset:
    """The stored set; large samples stay on disk and are mapped into memory, copied where they are written to."""
    meta = meta_at(folder)
    mapped = is_mapped(meta)
    try:
        parts = [tensor(folder / f"{part}.npy", mapped and part in ("x", "test_x")) for part in PARTS]
        columns = {
            name: Column(tuple(names), *(np.load(folder / f"{name}.{part}.npy") for part in ("train", "test")))
            for name, names in meta["columns"].items()
        }
        numbers = {key: tuple(meta[key]) for key in ("mean", "std", "codes")}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Refused(f"{folder}: cannot be read ({error}). {AGAIN}") from None
    return Dataset(meta["name"], *parts, classes=meta["classes"], kind=meta["kind"], columns=columns, **numbers)


def tensor(path: Path, mapped: bool) -> Tensor:
    return torch.from_numpy(np.load(path, mmap_mode="c" if mapped else None, allow_pickle=False))


def is_mapped(meta: Mapping[str, Any]) -> bool:
    return sum(meta["files"][f"{part}.npy"]["bytes"] for part in ("x", "test_x")) >= LARGE


def problems(folder: Path) -> list[str]:
    """What is wrong with a stored set: each file whose checksum is not the one of its import."""
    try:
        meta = meta_at(folder)
    except Refused as refused:
        return list(refused.problems)
    found: list[str] = []
    for name, about in meta["files"].items():
        with open(folder / name, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != about["sha256"]:
            found.append(f"{folder / name}: sha256 expected {about['sha256']}, found {sha256}. {AGAIN}")
    return found
