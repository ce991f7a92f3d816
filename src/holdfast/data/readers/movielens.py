"""MovieLens-1M as clicks: what a user rated against what it never did, by user, as FedEve's code prepares it.

The pipeline (models-data-metrics B3; simple-FL): gender, age, occupation, zip code and movie are numbered from 1 in the
order in which they first appear when users.dat, in its order, is joined with ratings.dat, in its order; then sorted by
user and time, ties as they stand. A user's last interaction is its test positive. Each training positive is followed by
4 negatives and the test one by 99, drawn with replacement from the movies that the user never rated, once, with `seed`.
Every rating counts as label 1. The history is what the user rated before, the last 50, zeros in front where fewer.

A row is 56 codes: user, gender, age, occupation, zip, movie, and the 50 of the history. Memory: 994,169 training
positives x 5 rows x 56 x 2 bytes = 557 MB, and 604,000 test rows of 68 MB, as int16 and memory-mapped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from holdfast.data.columns import Column
from holdfast.data.plan import generator
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.leaf import seed_problems
from holdfast.data.readers.room import room
from holdfast.data.readers.tree import Tree, told
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

HISTORY, NEGATIVES, CANDIDATES = 50, 4, 100  # candidates: the test positive and its 99 negatives
FIELDS = ("user", "gender", "age", "occupation", "zip", "movie")
MOVIE = FIELDS.index("movie")
OPTIONS = {"seed": 0}


class Rated(NamedTuple):
    """Every rating as codes, sorted by user and time."""

    fields: np.ndarray  # [n, 6] int32
    starts: np.ndarray  # [users + 1] where each user's ratings begin
    sizes: tuple[int, ...]  # of the codes, 0 included


def check(seed: object) -> None:
    if problems := seed_problems(seed):
        raise Refused(*problems)


def read(tree: Tree, seed: int) -> Dataset:
    rated = joined(tree)
    dtype = np.int16 if max(rated.sizes) <= np.iinfo(np.int16).max else np.int32
    many = len(rated.starts) - 1
    width = len(FIELDS) + HISTORY
    per = NEGATIVES + 1
    x = room(((len(rated.fields) - many) * per, width), dtype)
    test_x = room((many * CANDIDATES, width), dtype)
    draw, movies, at = generator(seed, "movielens"), int(rated.fields[:, MOVIE].max()), 0
    for i in range(many):
        own = rated.fields[rated.starts[i] : rated.starts[i + 1]]
        rows, free = histories(own), never(own[:, MOVIE], movies, int(own[0, 0]), tree)
        end = at + (len(own) - 1) * per
        x[at:end] = rivals(rows[:-1], free[draw.integers(len(free), size=(len(own) - 1, NEGATIVES))])
        negatives = free[draw.integers(len(free), size=(1, CANDIDATES - 1))]
        test_x[i * CANDIDATES : (i + 1) * CANDIDATES] = rivals(rows[-1:], negatives)
        at = end
    names = tuple(str(n) for n in rated.fields[rated.starts[:-1], 0])
    trained = np.repeat(np.arange(many), (np.diff(rated.starts) - 1) * per)
    column = Column(names, trained, np.repeat(np.arange(many), CANDIDATES))
    y, test_y = (np.tile(np.arange(size) == 0, len(part) // size) for part, size in ((x, per), (test_x, CANDIDATES)))
    about: dict[str, Any] = {"classes": 2, "name": "movielens1m", "kind": "clicks", "columns": {"user": column}}
    codes = rated.sizes + rated.sizes[MOVIE:] * HISTORY
    return Dataset.of(x, y.astype(np.int64), test_x, test_y.astype(np.int64), codes=codes, **about)


def histories(own: np.ndarray) -> np.ndarray:
    """One user's ratings [n, 6] -> rows [n, 56] with what came before each."""
    before = np.concatenate([np.zeros(HISTORY, own.dtype), own[:, MOVIE]])
    return np.concatenate([own, np.lib.stride_tricks.sliding_window_view(before, HISTORY)[:-1]], axis=1)


def rivals(rows: np.ndarray, movies: np.ndarray) -> np.ndarray:
    """Each row, followed by copies of it with another movie in the place of its own."""
    found = np.repeat(rows[:, None], movies.shape[1] + 1, axis=1)
    found[:, 1:, MOVIE] = movies
    return found.reshape(-1, rows.shape[1])


def never(own: np.ndarray, movies: int, user: int, tree: Tree) -> np.ndarray:
    """The rated movies that this user did not rate, its test movie counted as rated."""
    free = np.setdiff1d(np.arange(1, movies + 1), own)
    if not len(free):
        raise Refused(f"{tree.path}: user {user} rated all {movies} movies: no negatives can be drawn")
    return free


def joined(tree: Tree) -> Rated:
    """The three files as codes."""
    ratings = records(tree, "ratings.dat", 4, int)
    people = records(tree, "users.dat", 5, str)
    films = {number(tree, "movies.dat", row[0]) for row in records(tree, "movies.dat", 3, str)}
    where = tree.where(tree.one("*/ratings.dat"))
    table = np.array(ratings, np.int64).reshape(-1, 4)
    outside = table[(table[:, 2] < 1) | (table[:, 2] > 5)]
    if len(outside):
        raise Refused(
            f"{where}: rating {outside[0, 2]} of user {outside[0, 0]} is none of 1 to 5 ({len(outside)} such)"
        )
    known = {number(tree, "users.dat", row[0]): i for i, row in enumerate(people)}
    strange = [(what, n) for what, held, have in (("user", table[:, 0], known), ("movie", table[:, 1], films))
               for n in np.unique(held).tolist() if n not in have]  # fmt: skip
    if strange:
        raise Refused(
            f"{where}: {' '.join(map(str, strange[0]))} is in no other file ({len(strange)} such); all needed"
        )
    place = np.array([known[n] for n in table[:, 0].tolist()])
    table = table[np.argsort(place, kind="stable")]  # users in the order of users.dat, as a join has them
    owners = [people[known[n]] for n in table[:, 0].tolist()]
    columns = [
        table[:, 0],
        *(numbered([row[i] for row in owners]) for i in range(1, 5)),
        numbered(table[:, 1].tolist()),
    ]
    fields = np.stack(columns, axis=1).astype(np.int32)
    order = np.lexsort((table[:, 3], table[:, 0]))  # stable: of one second, as they stand
    fields = fields[order]
    starts = np.flatnonzero(np.r_[True, np.diff(fields[:, 0]) > 0, True])
    sizes = [int(fields[:, i].max()) + 1 for i in range(len(FIELDS))]
    sizes[MOVIE] = max(films) + 1  # 3,953 as in the authors' model, though only 3,706 movies were rated
    return Rated(fields, starts, tuple(sizes))


def numbered(values: list[Any]) -> np.ndarray:
    """1, 2, ... in the order of first appearance."""
    known = {value: i for i, value in enumerate(dict.fromkeys(values), 1)}
    return np.array([known[value] for value in values])


def records(tree: Tree, name: str, fields: int, form: Callable[[str], Any]) -> list[list[Any]]:
    """The lines of a file, fields separated by '::'."""
    found = tree.one(f"*/{name}")
    rows = [line.split("::") for line in tree.text(found, "latin-1").splitlines()]
    for i, row in enumerate(rows, 1):
        if len(row) != fields:
            said = f"has {len(row)} fields, expected were {fields} separated by '::'"
            raise Refused(f"{tree.where(found)}: line {i} ({told('::'.join(row))}) {said}; get the file again")
    if not rows:
        raise Refused(f"{tree.where(found)}: is empty")
    try:
        return rows if form is str else [[form(value) for value in row] for row in rows]
    except ValueError as error:
        raise Refused(f"{tree.where(found)}: holds a field that is no whole number ({error})") from None


def number(tree: Tree, name: str, text: str) -> int:
    if not text.isdecimal():
        raise Refused(f"{tree.where(tree.one(f'*/{name}'))}: {told(text)} is no number of a line")
    return int(text)


ENTRIES = (
    Entry(
        name="movielens1m",
        title="movies that users rated, against ones they did not: clicks, ranked for every user",
        samples="1,000,209 ratings of 3,706 movies by 6,040 users: 4,970,845 + 604,000 rows of 56 codes",
        licence="GroupLens' own: research use; no redistribution without permission",
        home="https://grouplens.org/datasets/movielens/1m/",
        cite="""@article{harper2015movielens,
  title = {The {MovieLens} Datasets: History and Context}, author = {Harper, F. Maxwell and Konstan, Joseph A.},
  journal = {ACM Transactions on Interactive Intelligent Systems}, volume = {5}, number = {4}, year = {2015}}""",
        layouts=(Layout("ml-1m (ratings.dat, users.dat, movies.dat)", ("*/ratings.dat", "*/users.dat", "*/movies.dat"),
                        read),),
        files=(
            File("ml-1m.zip", md5="c4d9eecfca2ab87c1945afe126590906",
                 url="https://files.grouplens.org/datasets/movielens/ml-1m.zip"),
        ),
        places=("ml-1m", "ml-1m.zip", "movielens1m"),
        options=OPTIONS,
        check=check,
        note="leave-one-out; negatives are drawn once with seed=0: another seed is another data set",
    ),
)  # fmt: skip
