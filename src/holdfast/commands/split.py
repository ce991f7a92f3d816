"""`holdfast data split`: deals a data set without a run, to be measured, drawn or kept"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.commands.options import number
from holdfast.errors import Refused

if TYPE_CHECKING:
    from holdfast.data.described import Described
    from holdfast.data.sets import Dataset
    from holdfast.data.splits import Split

ABOUT = "deal a data set to clients without a run: its measures, its heat map, a split.json"
EXAMPLE = 'split "dirichlet(alpha=0.1, clients=100)" --data cifar10 --seed 0 --out split.json -o split.html'

KINDS = (".html", ".svg")


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("text", metavar="SPLIT", help="as --split of a run: a rule with options, or a split.json")
    command.add_argument("--data", default="digits", help="a data set (digits), or package.module:callable")
    command.add_argument("--seed", type=number(int), default=0, help="of the split (0)")
    command.add_argument("--out", metavar="FILE", help="where to keep it, for --split of runs; must not be there yet")
    command.add_argument("-o", "--output", metavar="PAGE", help="draw it: a page (.html) or the heat map alone (.svg)")


def command(options: argparse.Namespace) -> int:
    from holdfast.data.described import described
    from holdfast.data.told import lines

    data, split = dealt(options)
    found = described(split, data)
    if options.out:
        kept(Path(options.out), split, found)
    if options.output:
        draw(options, split, data, found)
    if options.json:
        print(json.dumps(told(options, split, data, found)))
        return 0
    print("\n".join(lines(split.text, found.measures, data.classes)))
    print(f"of {data.name}, seed {split.seed}, hash {split.hash[:12]}")
    for path in filter(None, (options.out, options.output)):
        print(f"written to {path}")
    return 0


def dealt(options: argparse.Namespace) -> tuple[Dataset, Split]:
    """All that is wrong at once, and nothing is written before."""
    from holdfast.experiment import Run
    from holdfast.options import attempt, numbers
    from holdfast.wanted import wanted_data, wanted_split, without_data

    run = Run(split=options.text, data=options.data, seed=options.seed, data_dir=options.data_dir or "")
    problems = numbers(run)
    if options.output and Path(options.output).suffix not in KINDS:
        problems.append(f"-o {options.output}: it is drawn as {' or '.join(KINDS)}; give the file such a name")
    if options.out and Path(options.out).exists():
        problems.append(f"{options.out} is there already; choose another --out")
    data = attempt(problems, lambda: wanted_data(run), "data")
    if data is None:
        raise Refused(*problems, *without_data(run))
    split = attempt(problems, lambda: wanted_split(run, data), "split")
    if problems or split is None:
        raise Refused(*problems)
    return data, split


def kept(path: Path, split: Split, found: Described) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        split.save(path, *found)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}; choose another --out") from error


def draw(options: argparse.Namespace, split: Split, data: Dataset, found: Described) -> None:
    from holdfast.report import write
    from holdfast.report.drawn import page, picture

    about, counts = f"{data.name}, seed {split.seed}, hash {split.hash[:12]}", found.counts.tolist()
    if Path(options.output).suffix == ".svg":
        write(options.output, picture(split.text, about, counts))
    else:
        write(options.output, page(split.text, about, counts, found.measures))


def told(options: argparse.Namespace, split: Split, data: Dataset, found: Described) -> dict[str, Any]:
    return {
        "split": split.text, "data": data.name, "seed": split.seed, "hash": split.hash, "measures": found.measures,
        "marginals": found.counts.sum(0).tolist(), "file": options.out, "drawing": options.output,
    }  # fmt: skip
