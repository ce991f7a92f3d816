"""What `holdfast data list` and `show` tell of a data set: where it is, its files and checksums, sizes, memory plan."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

DIGITS = """\
@misc{alpaydin1998,
  author = {Alpaydin, Ethem and Kaynak, Cenk},
  title = {Optical Recognition of Handwritten Digits},
  howpublished = {UCI Machine Learning Repository}, year = {1998}, doi = {10.24432/C50P49}
}"""
SYNTHETIC = """\
@inproceedings{li2020,
  author = {Li, Tian and Sahu, Anit Kumar and Zaheer, Manzil and Sanjabi, Maziar and Talwalkar, Ameet and Smith, Virginia},
  title = {Federated Optimization in Heterogeneous Networks},
  booktitle = {MLSys}, year = {2020}
}"""  # noqa: E501
NO_FILES: dict[str, Any] = {"home": "", "cite": "", "files": [], "paths": [], "get": []}
OWN: dict[str, dict[str, Any]] = {
    "digits": {
        "title": "scikit-learn's handwritten digits",
        "samples": "1,437 + 360 of 1 x 8 x 8, 10 classes",
        "licence": "BSD-3-Clause (scikit-learn); the images CC BY 4.0 (UCI)",
        "state": "ships",
        "home": "https://archive.ics.uci.edu/dataset/80",
        "cite": DIGITS,
        "files": [{"name": "digits.npz", "md5": "", "size": 0, "url": "",
                   "sha256": "39bd8da2e993227831fec36841e36a0b91f645318a0286fb9e75d8e445cfd0da"}],
    },
    "synthetic": {
        "title": "FedProx's synthetic(alpha, beta) for any number of clients",
        "samples": "samples=50 of 60 numbers for each of clients=100, 10 classes; the split is `own`",
        "licence": "none needed",
        "state": "made",
        "home": "https://github.com/litian96/FedProx",
        "cite": SYNTHETIC,
    },
    "folder": {
        "title": "your images in class folders: folder(path='...')",
        "samples": "train/CLASS/image and test/CLASS/image (or val), or CLASS/image with a share held out",
        "licence": "yours",
        "state": "yours",
    },
    "npz": {
        "title": "your arrays in a file: npz(path='...')",
        "samples": "x, y, test_x, test_y (or MedMNIST's names), and rows of ids such as site, test_site",
        "licence": "yours",
        "state": "yours",
    },
}  # fmt: skip


def own() -> list[dict[str, Any]]:
    """What is no entry of the catalogue."""
    return [{"name": name, **NO_FILES, **about} for name, about in OWN.items()]


def facts(entry: Any) -> dict[str, Any]:
    keys = ("name", "title", "samples", "licence", "home", "cite", "note")
    files = [file._asdict() for file in entry.files]
    return {**{key: getattr(entry, key) for key in keys}, "options": dict(entry.options), "files": files}


def state(entry: Any, base: Path) -> dict[str, Any]:
    """Where it is: 'imported' (stored for fast loading), 'found' (in a layout of another library), 'missing'."""
    from holdfast.data import bring, store

    stored = [str(path) for path in store.copies(entry.name, base)]
    there = [str(path) for path in bring.places(entry, base) if bring.is_there(path)]
    kind = "imported" if stored else "found" if there else "missing"
    return {"state": kind, "paths": stored or there, "get": bring.ways(entry, {})}


def whole(call: Any, base: Path) -> dict[str, Any]:
    """One data set in full; figures where it is stored or need not be."""
    from holdfast.data.catalog import catalog
    from holdfast.data.sets import load

    if call.name in OWN:
        row = next(row for row in own() if row["name"] == call.name)
        free, options = given(call)
        return (
            row
            | {"options": options}
            | ({} if free and not call.options else figures(load(call.name, call.options), False))
        )
    if ":" in call.name and call.name not in catalog():
        title = "your own, by what it returns"
        row = {"name": call.name, **NO_FILES, "title": title, "state": "yours", "options": dict(call.options)}
        return row | figures(load(call.name, call.options), False)
    return chosen(call, base)


def given(call: Any) -> tuple[list[str], dict[str, Any]]:
    """The options of one of our own sets that have no value, and those that have one."""
    from holdfast.data.sets import own_sets

    parameters = inspect.signature(own_sets()[call.name]).parameters
    free = [name for name, p in parameters.items() if p.default is p.empty and name not in call.options]
    return free, {name: call.options.get(name, p.default) for name, p in parameters.items() if name not in free}


def chosen(call: Any, base: Path) -> dict[str, Any]:
    """A set of the catalogue with these options; a copy that was stored with other ones is only named."""
    from holdfast.data import bring, store

    entry = bring.entry_of(call.name)
    full = bring.check_options(entry, call.options)
    folder, here = store.folder_of(entry.name, full, entry.options, base), state(entry, base)
    others = [str(path) for path in store.copies(entry.name, base) if path != folder]
    row = {**facts(entry), **here, "options": full, "others": others, "get": bring.ways(entry, call.options)}
    if (folder / store.META).is_file():
        meta = store.meta_at(folder)
        row |= {"paths": [str(folder)], **figures(store.opened(folder), store.is_mapped(meta))}
        return row | {"folder": str(folder), "disk_bytes": disk(meta), "source": meta.get("source")}
    there = [str(path) for path in bring.places(entry, base) if bring.is_there(path)]
    return row | {"state": "found" if there else "missing", "paths": there}


def told(row: dict[str, Any]) -> str:
    if row["state"] == "missing":
        fetched = [line for line in row["get"] if line.endswith("--download")]
        return f"not here; {(fetched or row['get'])[-1]}"
    words = {
        "ships": "ships with holdfast", "made": "made by holdfast when it is wanted", "yours": "read when it is wanted",
        "imported": "imported: ", "found": "found, read as it is: ",
    }  # fmt: skip
    return words[row["state"]] + ", ".join(row["paths"])


def sums(row: dict[str, Any]) -> list[str]:
    """The published checksum of each file that is known; nothing of what has no files but a user's own."""

    def one(file: dict[str, Any]) -> str:
        kind = "sha256" if file["sha256"] else "md5"
        return f"{kind} {file[kind]}  {file['name']}" if file[kind] else f"none published  {file['name']}"

    return [one(file) for file in row["files"]] or ["none published"] * (row["state"] not in ("made", "yours"))


def first_sum(row: dict[str, Any]) -> str:
    found = sums(row)
    more = f" (and {len(found) - 1} more: data show {row['name']})" if len(found) > 1 else ""
    return f"checksums: {found[0]}{more}" if found else ""


def disk(meta: dict[str, Any]) -> int:
    return sum(about["bytes"] for about in meta["files"].values())


def figures(data: Any, mapped: bool) -> dict[str, Any]:
    """What can be counted, and the memory plan."""
    from holdfast.data.store import arrays_of
    from holdfast.experiment import SMALL

    large = sum(part.nbytes for part in (data.x, data.test_x))
    every = sum(array.nbytes for array in arrays_of(data).values())
    prepared = 0 if data.codes or data.source else 4 * data.x.numel()
    counts = [rows.bincount(minlength=data.classes).tolist() for rows in (data.y, data.test_y)]
    return {
        "train": data.source.clients * data.source.each if data.source else len(data.x),
        "test": len(data.test_x),
        "shape": list(data.shape),
        "type": str(data.x.dtype).removeprefix("torch."),
        "kind": data.kind,
        "classes": data.classes,
        "codes": list(data.codes),
        "train_counts": [] if data.source else counts[0],
        "test_counts": counts[1],
        "mean": list(data.mean),
        "std": list(data.std),
        "columns": {name: len(column.names) for name, column in data.columns.items()},
        "mapped": mapped,
        "made": data.source is not None,
        "memory_bytes": every - large if mapped else every,
        "device_bytes": every,
        "normalized_bytes": prepared if prepared <= SMALL else 0,
    }


def show(row: dict[str, Any]) -> None:
    for key in ("name", "title", "samples", "licence", "home", "note"):
        line(key, row.get(key))
    line("options", ", ".join(f"{key}={value!r}" for key, value in row.get("options", {}).items()))
    line("where", told(row))
    line("others", ", ".join(row.get("others", [])) and "with other options: " + ", ".join(row["others"]))
    line("checksums", "\n".join(sums(row)))
    if "train" in row:
        line("here", f"{row['train']:,} to train and {row['test']:,} to test, {size_of(row['shape'])}, "
                     f"{row['type']}, {row['classes']} classes")  # fmt: skip
        if not row["made"]:
            line("a class", f"{spread(row['train_counts'])} to train, {spread(row['test_counts'])} to test")
        line("columns", ", ".join(f"{name} ({count:,})" for name, count in row["columns"].items()))
        line("memory", plan(row))
        line("on disk", f"{mega(row['disk_bytes'])} in {row['folder']}" if "folder" in row else "")
    elif row["state"] == "missing":
        line("to get it", "\n".join(row["get"]))
    elif row["get"]:
        line("", "import it to see its figures and to load it faster: " + row["get"][0])
    if row["cite"]:
        print(row["cite"])


def plan(row: dict[str, Any]) -> str:
    if row["made"]:
        return f"{mega(row['memory_bytes'])} held; a client's samples are made in every round that it takes part in"
    if row["mapped"]:
        return (
            f"{mega(row['memory_bytes'])} held; the samples are mapped from disk, and memory keeps the pages in use; "
            f"a GPU holds all {mega(row['device_bytes'])}"
        )
    prepared = (
        f"; a run without augmentation adds {mega(row['normalized_bytes'])}, the training samples normalised once"
    )
    held = f"{mega(row['memory_bytes'])}, all of it held; as much on a GPU"
    return held + (f"{prepared} in float32" if row["normalized_bytes"] else "")


def line(key: str, value: str | None) -> None:
    if value:
        begin = f"  {key:<10} "
        print(begin + value.replace("\n", "\n" + " " * len(begin)))


def size_of(shape: list[int]) -> str:
    return " x ".join(str(n) for n in shape)


def spread(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def mega(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
