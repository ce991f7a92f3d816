"""LEAF's JSON files: {"users": [...], "num_samples": [...], "user_data": {user: {"x": [...], "y": [...]}}}.

LEAF writes whole data sets into `all_data/`, and what it has split into `train/` and `test/`, 50 to 100 users a file.
Caldas et al., LEAF: A Benchmark for Federated Settings, 2018; github.com/TalwalkarLab/leaf.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from holdfast.data.plan import generator
from holdfast.data.readers import hub
from holdfast.data.readers.stack import Rows, emptied
from holdfast.data.readers.tree import Tree, told
from holdfast.errors import Refused

SPLIT = ("*/train/*.json", "*/test/*.json")
WHOLE = ("*/all_data*.json",)
CITE = """@article{caldas2018leaf,
  title = {{LEAF}: A Benchmark for Federated Settings},
  author = {Caldas, Sebastian and Duddu, Sai Meher Karthik and Wu, Peter and Li, Tian and Kone{\\v{c}}n{\\'y}, Jakub and
            McMahan, H. Brendan and Smith, Virginia and Talwalkar, Ameet},
  journal = {arXiv:1812.01097}, year = {2018}}"""


class User(NamedTuple):
    """One user's samples as they stand in a file; `where` names both."""

    name: str
    x: list[Any]
    y: list[Any]
    where: str


def split_files(tree: Tree) -> tuple[list[str], list[str]]:
    """The files of the training and the test part."""
    return one_folder(tree, tree.find(SPLIT[0]), SPLIT[0]), one_folder(tree, tree.find(SPLIT[1]), SPLIT[1])


def whole_files(tree: Tree) -> list[str]:
    """The files of a set that is not split: those in `all_data/` where it has such a folder."""
    names = one_folder(tree, tree.find("*/all_data/*.json") or tree.find(WHOLE[0]), WHOLE[0])
    part = PurePosixPath(names[0]).parent.name
    if part in ("train", "test"):
        raise Refused(f"{tree.path}: has LEAF's {part} files and not its other part; give the folder that holds both")
    return names


def one_folder(tree: Tree, names: list[str], pattern: str) -> list[str]:
    folders = sorted({str(PurePosixPath(name).parent) for name in names})
    if len(folders) > 1:
        raise Refused(
            f"{tree.path}: {pattern.lstrip('*/')} lies in several folders ({', '.join(folders[:3])}): give the folder "
            "of one data set"
        )
    return names


def users(tree: Tree, names: Sequence[str]) -> Iterator[User]:
    """Every user of these files, one file in memory at a time.

    `num_samples` is not compared: LEAF's own splitter writes numbers there that are too large for Shakespeare's tests.
    """
    for name in names:
        where = tree.where(name)
        text = tree.text(name)
        try:
            held = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Refused(f"{where}: is no whole JSON file ({error}); get it again") from None
        for user in _fields(where, held, {"users": list, "user_data": dict})[0]:
            data = held["user_data"].get(user) if isinstance(user, str) else None
            if data is None:
                raise Refused(f"{where}: user {told(user)} is listed in users and has no user_data")
            of = f"{where}, user {user}"
            x, y = _fields(of, data, {"x": list, "y": list})
            if len(x) != len(y):
                raise Refused(f"{of}: has {len(x)} samples x and {len(y)} labels y; every sample needs one label")
            yield User(user, x, y, of)


def tabled(tree: Tree, who: str, x: str, y: str) -> Iterator[User]:
    """The same from parquet with a row a sample: Flower keeps LEAF's sets so on Hugging Face, unsplit, as 'train'.

    A user comes as often as it has runs of rows; `gathered` puts them together in their order.
    """
    for name in tree.find(hub.TRAIN):
        for batch in hub.batches(tree, name, (who, x, y)):
            for user, rows in groupby(batch, key=lambda row: row[who]):
                held = list(rows)
                where = f"{tree.where(name)}, {who} {user}"
                yield User(str(user), [row[x] for row in held], [row[y] for row in held], where)


def _fields(where: str, held: Any, fields: dict[str, type]) -> list[Any]:
    wrong = [key for key, kind in fields.items() if not isinstance(held, dict) or not isinstance(held.get(key), kind)]
    if wrong:
        got = f"it has {', '.join(map(str, list(held)[:5]))}" if isinstance(held, dict) else f"it is {told(held)}"
        raise Refused(f"{where}: has no field {' and no field '.join(wrong)} of LEAF's form; {got}")
    return [held[key] for key in fields]


def labels(user: User, classes: int) -> np.ndarray:
    """Class numbers, refused where they are none."""
    wrong = [y for y in user.y if not isinstance(y, int) or not 0 <= y < classes]
    if wrong:
        raise Refused(f"{user.where}: label {told(wrong[0])} is none of 0 to {classes - 1} ({len(wrong)} of them)")
    return np.array(user.y, np.int64)


def parted(many: list[Rows], share: float, seed: int) -> tuple[list[Rows], list[Rows]]:
    """LEAF's split within users: max(1, floor(share n)) samples drawn to train with, the rest to test with.

    As there, users with one sample are left out, and of two samples each part gets one. LEAF's draws depend on the
    order of its files and on the clock, so the draws are ours: `seed`.
    """
    train: list[Rows] = []
    test: list[Rows] = []
    for i, (name, x, y) in enumerate(emptied(many)):
        n = len(y)
        if n < 2:
            continue
        kept = np.zeros(n, bool)
        kept[generator(seed, "leaf", client=i).permutation(n)[: taken(n, share)]] = True
        train.append(Rows(name, x[kept], y[kept]))
        test.append(Rows(name, x[~kept], y[~kept]))
    return train, test


def taken(n: int, share: float) -> int:
    return 1 if n == 2 else max(1, int(share * n))


def share_problems(share: object, seed: object = 0) -> list[str]:
    problems: list[str] = []
    if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0 < share < 1:
        problems.append(f"share={share!r} is no share: give the part of each user's samples to train with, 0.9 in LEAF")
    return problems + seed_problems(seed)


def seed_problems(seed: object) -> list[str]:
    fine = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
    return [] if fine else [f"seed={seed!r} is no whole number from 0 on"]


def check_split_already(tree: Tree, given: Mapping[str, object], default: Mapping[str, object]) -> None:
    """Options that say how to split are refused where the files are split."""
    wrong = [f"{key}={value!r}" for key, value in given.items() if value != default[key]]
    if wrong:
        raise Refused(
            f"{tree.path}: these files are split into train and test, so {', '.join(wrong)} cannot be chosen; give "
            "the folder all_data instead, or leave the option out"
        )


def gathered(found: Iterator[User], convert: Callable[[User], Rows]) -> list[Rows]:
    """The users in the order of the files; samples of one user in several files are put together."""
    held: dict[str, list[Rows]] = {}
    for user in found:
        if user.y:
            held.setdefault(user.name, []).append(convert(user))
    return [
        rows[0] if len(rows) == 1 else Rows(name, *(np.concatenate([getattr(r, part) for r in rows]) for part in "xy"))
        for name, rows in held.items()
    ]
