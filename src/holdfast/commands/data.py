"""the data sets: what there is, what is here, bringing one in, checking it"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from holdfast.commands import split
from holdfast.errors import Failed, Refused

EXAMPLES = """\
examples:
  holdfast data list
  holdfast data show cifar10
  holdfast data import ~/Downloads/cifar-10-python.tar.gz
  holdfast data import cifar10 --download
  holdfast data verify
  holdfast data split "dirichlet(alpha=0.1, clients=100)" --data digits -o split.html
"""
WHERE = "the data folder (else $HOLDFAST_DATA, else ~/.cache/holdfast)"


def add(command: argparse.ArgumentParser) -> None:
    tasks = command.add_subparsers(metavar="TASK", required=True, parser_class=type(command))

    def task(name: str, call: Any, about: str, example: str) -> argparse.ArgumentParser:
        made = tasks.add_parser(name, help=about, description=about, epilog=f"example:\n  holdfast data {example}")
        made.add_argument("--data-dir", metavar="FOLDER", help=WHERE)
        for flag, what in (("--json", "JSON on standard output, for scripts"), ("--debug", "show tracebacks")):
            made.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=what)
        made.set_defaults(task=call, parser=made)
        return made

    task("list", list_, "every data set: what it is, its licence, where it is or how to get it", "list --json")
    show = task("show", show_, "one data set in full: sizes, classes, columns, memory, citation", "show cifar10")
    show.add_argument("name", help='a name of the list; with options, as in "pacs(image_size=32)"')
    bring = task(
        "import",
        import_,
        "read a copy that you have (or download one) and store it for fast loading",
        'import PACS.zip --name "pacs(image_size=32)"',
    )
    bring.add_argument("path", help="a file or folder in its original layout; with --download, a name of the list")
    bring.add_argument("--name", help='which set it is, where that is not plain; options as in "pacs(image_size=32)"')
    bring.add_argument("--download", action="store_true", help="fetch it first, from where its authors publish it")
    bring.add_argument("--url", action="append", default=[], help="with --download: a mirror (may be repeated)")
    bring.add_argument("--unchecked", action="store_true", help="take files whose checksum is not the published one")
    bring.add_argument("--replace", action="store_true", help="read it anew where it is stored already")
    verify = task("verify", verify_, "compare stored sets with the checksums of their import", "verify cifar10")
    verify.add_argument("name", nargs="?", help="one set only")
    split.add(task("split", split.command, split.ABOUT, split.EXAMPLE))


def command(options: argparse.Namespace) -> int:
    return options.task(options)


def list_(options: argparse.Namespace) -> int:
    from holdfast.data import store
    from holdfast.data.catalog import catalog

    base = store.root(options.data_dir)
    rows = [OWN, *({**facts(entry), **state(entry, base)} for entry in catalog().values())]
    if options.json:
        for row in rows:
            print(json.dumps(row))
        return 0
    print(f"data sets; the data folder is {base}")
    for row in rows:
        print(f"  {row['name']:<16} {row['title']}")
        print(f"  {'':<16} {row['samples']}; licence: {row['licence']}")
        print(f"  {'':<16} {told(row)}")
    print("and your own: folder(path='...') images in class folders, npz(path='...') arrays, package.module:callable")
    return 0


OWN = {
    "name": "digits",
    "title": "scikit-learn's handwritten digits",
    "samples": "1,437 + 360 of 1 x 8 x 8, 10 classes",
    "licence": "BSD-3-Clause (scikit-learn); the images CC BY 4.0 (UCI)",
    "home": "https://archive.ics.uci.edu/dataset/80",
    "state": "ships",
    "paths": [],
    "get": [],
}


def facts(entry: Any) -> dict[str, Any]:
    keys = ("name", "title", "samples", "licence", "home", "cite", "note")
    return {**{key: getattr(entry, key) for key in keys}, "options": dict(entry.options)}


def state(entry: Any, base: Path) -> dict[str, Any]:
    """Where it is: 'imported' (stored for fast loading), 'found' (in a layout of another library), 'missing'."""
    from holdfast.data import bring, store

    stored = [str(path) for path in store.copies(entry.name, base)]
    there = [str(path) for path in bring.places(entry, base) if bring.is_there(path)]
    kind = "imported" if stored else "found" if there else "missing"
    return {"state": kind, "paths": stored or there, "get": bring.ways(entry, {})}


def told(row: dict[str, Any]) -> str:
    if row["state"] == "missing":
        return f"not here; {row['get'][-1] if row['get'][-1].startswith('to get it') else row['get'][-2]}"
    words = {"ships": "ships with holdfast", "imported": "imported: ", "found": "found, read as it is: "}
    return words[row["state"]] + ", ".join(row["paths"])


def show_(options: argparse.Namespace) -> int:
    from holdfast.data import bring, sets, store
    from holdfast.text import one

    call = one(options.name, "data set")
    base = store.root(options.data_dir)
    if call.name == "digits":
        whole = {**OWN, **figures(sets.load("digits", call.options), False)}
    else:
        entry = bring.entry_of(call.name)
        full = bring.check_options(entry, call.options)
        folder = store.folder_of(entry.name, full, entry.options, base)
        whole = {**facts(entry), **state(entry, base), "options": full}
        if (folder / store.META).is_file():
            meta = store.meta_at(folder)
            whole |= figures(store.opened(folder), store.is_mapped(meta))
            whole |= {"folder": str(folder), "disk_bytes": disk(meta), "source": meta.get("source")}
    if options.json:
        print(json.dumps(whole))
    else:
        show_lines(whole)
    return 0


def disk(meta: dict[str, Any]) -> int:
    return sum(about["bytes"] for about in meta["files"].values())


def figures(data: Any, mapped: bool) -> dict[str, Any]:
    """What can be counted, and the memory plan."""
    from holdfast.data.store import arrays_of

    counts = [rows.bincount(minlength=data.classes).tolist() for rows in (data.y, data.test_y)]
    large = sum(part.nbytes for part in (data.x, data.test_x))
    whole = sum(array.nbytes for array in arrays_of(data).values())
    return {
        "train": len(data.x),
        "test": len(data.test_x),
        "shape": list(data.shape),
        "type": str(data.x.dtype).removeprefix("torch."),
        "kind": data.kind,
        "classes": data.classes,
        "codes": list(data.codes),
        "train_counts": counts[0],
        "test_counts": counts[1],
        "mean": list(data.mean),
        "std": list(data.std),
        "columns": {name: len(column.names) for name, column in data.columns.items()},
        "mapped": mapped,
        "memory_bytes": whole - large if mapped else whole,
        "device_bytes": whole,
    }


def show_lines(whole: dict[str, Any]) -> None:
    for key in ("name", "title", "samples", "licence", "home", "note"):
        line(key, whole.get(key))
    line("options", ", ".join(f"{key}={value!r}" for key, value in whole.get("options", {}).items()))
    line("where", told(whole))
    if "train" in whole:
        line("here", f"{whole['train']:,} to train and {whole['test']:,} to test, {size_of(whole['shape'])}, "
                     f"{whole['type']}, {whole['classes']} classes")  # fmt: skip
        line("a class", f"{spread(whole['train_counts'])} to train, {spread(whole['test_counts'])} to test")
        line("columns", ", ".join(f"{name} ({count:,})" for name, count in whole["columns"].items()))
        line("memory", plan(whole))
        line("on disk", f"{mega(whole['disk_bytes'])} in {whole['folder']}" if "folder" in whole else "")
    elif whole["state"] == "missing":
        line("to get it", "\n".join(whole["get"]))
    else:
        line("", "import it to see its figures and to load it faster: " + whole["get"][0])
    if whole.get("cite"):
        print(whole["cite"])


def plan(whole: dict[str, Any]) -> str:
    if not whole["mapped"]:
        return f"{mega(whole['memory_bytes'])}, all of it held; as much on a GPU"
    return (
        f"{mega(whole['memory_bytes'])} held; the samples are mapped from disk, and memory keeps the pages in use; "
        f"a GPU holds all {mega(whole['device_bytes'])}"
    )


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


def import_(options: argparse.Namespace) -> int:
    from holdfast.data import bring, fetch
    from holdfast.text import one

    if options.url and not options.download:
        raise Refused("--url names a mirror for --download; give both")
    if options.download and options.name:
        raise Refused(f"--name {options.name} stands beside --download; the set to download is the argument itself")
    text = options.path if options.download else options.name
    call = one(text, "data set") if text is not None else None
    source = options.path
    if call is not None:
        bring.check_options(bring.entry_of(call.name), call.options)
    if options.download and call is not None:
        source = fetch.download(call.name, options.data_dir, options.url, progress)
    elif not Path(source).expanduser().exists():
        raise Refused(no_path(source))
    made = bring.import_(
        source,
        call.name if call else None,
        call.options if call else {},
        options.data_dir,
        checked=not options.unchecked,
        replace=options.replace,
    )
    if options.json:
        row = {key: value for key, value in made.meta.items() if key != "columns"}
        print(json.dumps({**row, "folder": str(made.folder)}))
        return 0
    train, test = made.meta["samples"]
    print(f"{made.folder.name}: {train:,} to train and {test:,} to test of {size_of(made.meta['shape'])}, "
          f"{made.meta['classes']} classes; {mega(disk(made.meta))} in {made.folder}")  # fmt: skip
    sums = len(made.meta["source"]["checked"])
    print(
        f"  read as {made.meta['source']['layout']}; files with their published checksum: {sums or 'none to compare'}"
    )
    return 0


def no_path(path: str) -> str:
    from holdfast.data.catalog import catalog

    near = f"; to download it: holdfast data import {path} --download" if path in catalog() else ""
    return f"{path}: there is no such file or folder{near}"


def progress(name: str, had: int, whole: int) -> None:
    """One line, rewritten, where somebody looks."""
    if sys.stderr.isatty():
        text = f"{name}: {mega(had)}" + (f" of {mega(whole)}" if whole else "")
        print(f"\r{text[: shutil.get_terminal_size().columns - 1]}", end="\n" if had == whole else "", file=sys.stderr)


def verify_(options: argparse.Namespace) -> int:
    from holdfast.data import bring, store
    from holdfast.data.catalog import catalog

    base = store.root(options.data_dir)
    names = [bring.entry_of(options.name).name] if options.name else list(catalog())
    folders = [folder for name in names for folder in store.copies(name, base)]
    if options.name and not folders:
        raise Refused(f"{options.name} is not imported in {base}; see holdfast data show {options.name}")
    found = {folder: store.problems(folder) for folder in folders}
    for folder, problems in found.items():
        if options.json:
            print(json.dumps({"name": folder.name, "folder": str(folder), "problems": problems}))
        else:
            print(f"{folder.name}: {'; '.join(problems) or 'as imported'}")
    if not folders and not options.json:
        print(f"nothing is imported in {base}")
    bad = [folder.name for folder, problems in found.items() if problems]
    if bad:
        raise Failed(f"{', '.join(bad)}: not as imported")
    return 0
