"""Shakespeare by role: the next character after 80, in LEAF's form or from the speeches of every role.

Windows, alphabet and split are LEAF's (Caldas et al., 2018): line ends become spaces and runs of spaces one; every
position gives 80 characters and the one that follows; of each role the first 90 % of the windows train, the next 79,
which share characters with them, are dropped, and the rest test. Roles with no test window, below 790 windows in all,
are left out, as there.

A character outside the alphabet has the code 79: that of '}', which the plays do not hold, and which the -1 of the
original code means where it does not crash. Memory: 80 bytes a window, 338 MB for LEAF's 4.2 million, memory-mapped.
"""

from __future__ import annotations

import json
import re

import numpy as np

from holdfast.data.readers.entry import Entry, Layout
from holdfast.data.readers.hub import TRAIN
from holdfast.data.readers.leaf import (
    CITE,
    SPLIT,
    WHOLE,
    User,
    check_split_already,
    gathered,
    share_problems,
    split_files,
    tabled,
    taken,
    users,
    whole_files,
)  # fmt: skip
from holdfast.data.readers.stack import Rows, both
from holdfast.data.readers.tree import Tree, told
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
UNKNOWN = 79
LENGTH = 80
OPTIONS = {"share": 0.9}
ROLES = ("*roles*.json",)
TABLE = np.full(128, UNKNOWN, np.uint8)
TABLE[[ord(character) for character in ALPHABET]] = np.arange(len(ALPHABET))


def codes(text: str) -> np.ndarray:
    """A code a character."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.where(points < len(TABLE), TABLE[np.minimum(points, len(TABLE) - 1)], UNKNOWN).astype(np.uint8)


def windows(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Every 80 characters that have a next one, and that one."""
    held = codes(re.sub(" {2,}", " ", text.replace("\n", " ")))
    if len(held) <= LENGTH:
        return np.zeros((0, LENGTH), np.uint8), np.zeros(0, np.int64)
    return np.lib.stride_tricks.sliding_window_view(held, LENGTH)[:-1], held[LENGTH:].astype(np.int64)


def in_time(many: list[Rows], share: float) -> tuple[list[Rows], list[Rows]]:
    """LEAF's split by position: no test window shares a character with a training window."""
    train: list[Rows] = []
    test: list[Rows] = []
    for name, x, y in many:
        first = taken(len(y), share)
        if len(y) > first + LENGTH - 1:
            train.append(Rows(name, x[:first], y[:first]))
            test.append(Rows(name, x[first + LENGTH - 1 :], y[first + LENGTH - 1 :]))
    return train, test


def check(share: object) -> None:
    if problems := share_problems(share):
        raise Refused(*problems)


def leaf_split(tree: Tree, share: float) -> Dataset:
    """LEAF's train/ and test/, as it split them."""
    check_split_already(tree, {"share": share}, OPTIONS)
    train, test = (gathered(users(tree, names), strings) for names in split_files(tree))
    return made(tree, train, test)


def leaf_whole(tree: Tree, share: float) -> Dataset:
    """LEAF's all_data/, split here in time."""
    return made(tree, *in_time(gathered(users(tree, whole_files(tree)), strings), share))


def parquet(tree: Tree, share: float) -> Dataset:
    """Flower's copy of LEAF's set, split here in time."""
    return made(tree, *in_time(gathered(tabled(tree, "character_id", "x", "y"), strings), share))


def by_role(tree: Tree, share: float) -> Dataset:
    """{"play|ROLE": [speech, ...]}: the speeches of a role in their order, a line end after each."""
    name = tree.one(ROLES[0])
    where, text = tree.where(name), tree.text(name)
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where}: is no whole JSON file ({error}); get it again") from None
    if not isinstance(held, dict):
        raise Refused(f"{where}: is {told(held)}; expected were the speeches of every role, {{'play|ROLE': [...]}}")
    wrong = [r for r, said in held.items() if not isinstance(said, list) or not all(isinstance(s, str) for s in said)]
    if wrong:
        raise Refused(f"{where}: role {told(wrong[0])} is no list of texts ({len(wrong)} such)")
    return made(
        tree, *in_time([Rows(role, *windows("".join(s + "\n" for s in said))) for role, said in held.items()], share)
    )


def strings(user: User) -> Rows:
    """LEAF's windows as strings of 80 characters, and the next ones."""
    for what, values, length in (("x", user.x, LENGTH), ("y", user.y, 1)):
        wrong = [v for v in values if not isinstance(v, str) or len(v) != length]
        if wrong:
            said = "a window of 80 characters" if what == "x" else "one character"
            raise Refused(f"{user.where}: {told(wrong[0])} in {what} is not {said} ({len(wrong)} such)")
    return Rows(user.name, codes("".join(user.x)).reshape(-1, LENGTH), codes("".join(user.y)).astype(np.int64))


def made(tree: Tree, train: list[Rows], test: list[Rows]) -> Dataset:
    if not train or not test:
        raise Refused(f"{tree.path}: no role has enough text for a window to train with and one to test with")
    a, b, column = both(train, test)
    many = len(ALPHABET)
    about = {"classes": many, "name": "shakespeare", "kind": "next", "codes": (many,), "columns": {"role": column}}
    return Dataset.of(a.x, a.y, b.x, b.y, **about)


ENTRIES = (
    Entry(
        name="shakespeare",
        title="Shakespeare's plays by role: the next character after 80",
        samples="LEAF: 4,226,158 windows of 1,129 roles (before its split), 80 characters",
        licence="the plays are in the public domain; LEAF's code is BSD-2",
        home="https://leaf.cmu.edu",
        cite=CITE,
        layouts=(
            Layout("LEAF json, split (data/train, data/test)", SPLIT, leaf_split),
            Layout("LEAF json, whole (data/all_data)", WHOLE, leaf_whole),
            Layout("parquet with character_id, x and y (flwrlabs/shakespeare)", (TRAIN,), parquet),
            Layout("speeches by role (shakespeare_roles.json: {'play|ROLE': [speech, ...]})", ROLES, by_role),
        ),
        places=("shakespeare", "leaf/data/shakespeare/data", "shakespeare_roles.json"),
        hub=("flwrlabs/shakespeare",),
        options=OPTIONS,
        check=check,
        how=(
            "LEAF's form: git clone https://github.com/TalwalkarLab/leaf, then in data/shakespeare "
            "./preprocess.sh -s niid --sf 1.0 -k 0 -t sample, and import data/shakespeare/data"
        ),
        note="a whole set is split in time: share=0.9 of each role's windows, then a gap of 79; shorter roles left out",
    ),
)
