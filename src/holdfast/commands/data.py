"""the data sets: what there is, what is here, bringing one in, checking it"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from holdfast.commands import shown, split
from holdfast.commands.shown import mega, size_of
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
    rows = [*shown.own(), *({**shown.facts(entry), **shown.state(entry, base)} for entry in catalog().values())]
    if options.json:
        for row in rows:
            print(json.dumps(row))
        return 0
    print(f"data sets; the data folder is {base}")
    for row in rows:
        print(f"  {row['name']:<16} {row['title']}")
        print(f"  {'':<16} {row['samples']}; licence: {row['licence']}")
        print(f"  {'':<16} {shown.told(row)}")
        if sums := shown.first_sum(row):
            print(f"  {'':<16} {sums}")
    print("and your own as package.module:callable")
    return 0


def show_(options: argparse.Namespace) -> int:
    from holdfast.data import store
    from holdfast.text import one

    whole = shown.whole(one(options.name, "data set"), store.root(options.data_dir))
    if options.json:
        print(json.dumps(whole))
    else:
        shown.show(whole)
    return 0


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
          f"{made.meta['classes']} classes; {mega(shown.disk(made.meta))} in {made.folder}")  # fmt: skip
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
