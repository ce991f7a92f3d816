"""Clients that the data has already: writers, roles, users, domains, or lists in a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from holdfast.data.dealing import Dealt, Indices, Samples, column, grouped, pools
from holdfast.errors import Refused


def natural(
    samples: Samples,
    rng: Generator,
    *,
    by: str | None = None,
    min_samples: int = 1,
    fraction: float = 1.0,
    fraction_of: str = "samples",
    train: float | None = None,
    order: str = "random",
    gap: int = 0,
) -> Dealt:
    """One client for every id of a column (`by`: writer, role, user, ...), in the order of the column's names.

    As LEAF prepares its data (Caldas et al. 2018, data/utils): first `fraction` of the data, by whole clients in random
    order until so many samples are reached, of the last only its first ones; or, with fraction_of='clients', so many
    clients. Then clients of fewer than `min_samples` are dropped (LEAF's own test is `>`, so its -k 10 is 11 here).

    A client's own test rows are those that the data's test part has of it. Where the test part knows no ids, or `train`
    is given, they are held out of its training rows: max(1, int(train n)) stay, train being .9 if not given, and a
    client that would have no test row is dropped. `order='time'` keeps the first to train and drops `gap` rows before
    the test rows (LEAF's Shakespeare: gap=79, for windows of 80 characters). train=1 holds nothing out.
    """
    ids = column(samples, by)
    own_tests = train is None and len(ids.test) > 0
    if own_tests and (order, gap) != ("random", 0):
        raise Refused(f"order={order!r}, gap={gap}: the data has its own test rows; give train=0.9 to hold out others")
    if gap and order != "time":
        raise Refused(f"gap={gap} means nothing with order={order!r}: leave it out or write order='time'")
    rows = sampled(grouped(ids.train, len(ids.names)), fraction, fraction_of, rng)
    largest = max(map(len, rows), default=0)
    kept = [i for i, own in enumerate(rows) if len(own) >= min_samples]
    if not kept:
        raise Refused(
            f"min_samples={min_samples}: the largest of {len(rows)} clients has {largest} samples; take fewer"
        )
    if own_tests:
        tests = grouped(ids.test, len(ids.names))
        return Dealt([rows[i] for i in kept], [tests[i] for i in kept])
    share = 0.9 if train is None else train
    if share == 1:
        return Dealt([rows[i] for i in kept])
    cut = [_apart(rows[i], share, order == "time", gap, rng) for i in kept]
    return _both(cut, f"natural(train={share:g}, gap={gap})")


def sampled(rows: Indices, fraction: float, of: str, rng: Generator) -> Indices:
    """LEAF's sample.py: whole clients in random order; the others get no rows."""
    if fraction == 1:
        return rows
    present = rng.permutation([i for i, own in enumerate(rows) if len(own)])
    taken = [own[:0] for own in rows]
    if of == "clients":
        for i in present[: max(1, round(fraction * len(present)))]:
            taken[i] = rows[i]
        return taken
    left = max(1, int(fraction * sum(map(len, rows))))
    for i in present:
        taken[i] = rows[i][:left]
        left -= len(taken[i])
    return taken


def _apart(rows: np.ndarray, share: float, in_time: bool, gap: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train and to test on, as LEAF's split_data.py: at least one of each, where there are two."""
    many = 1 if len(rows) == 2 else max(1, int(share * len(rows)))
    if in_time:
        return rows[:many], rows[many + gap :]
    order = rng.permutation(len(rows))
    return rows[np.sort(order[:many])], rows[np.sort(order[many:])]


def _both(parts: list[tuple[np.ndarray, np.ndarray]], what: str) -> Dealt:
    """Clients that have rows of both kinds."""
    kept = [(own, test) for own, test in parts if len(own) and len(test)]
    if not kept:
        raise Refused(f"{what}: none of {len(parts)} clients would have a test row; take a smaller train or gap")
    return Dealt([own for own, _ in kept], [test for _, test in kept], "train")


def leave_one_out(samples: Samples, rng: Generator, *, by: str = "user", min_samples: int = 2) -> Dealt:
    """One client for every user; its last row is its test row, rows of a user standing in the order of time.

    Users of fewer than `min_samples` rows (two at least) are dropped. Negatives are the data set's: where it has drawn
    them, its test part has the last items already, and the split is natural(by='user').
    """
    ids = column(samples, by)
    if len(ids.test):
        raise Refused(
            f"leave_one_out(by={by!r}): the test part of the data has rows of every {by} already; "
            f"take natural(by={by!r})"
        )
    rows = [own for own in grouped(ids.train, len(ids.names)) if len(own) >= max(2, min_samples)]
    if not rows:
        raise Refused(f"min_samples={min_samples}: no {by} has so many samples, and two are needed; take fewer")
    return Dealt([own[:-1] for own in rows], [own[-1:] for own in rows], "train")


def domains(samples: Samples, rng: Generator, *, by: str = "domain", clients_each: int = 1) -> Dealt:
    """Feature shift: one client for every domain, or `clients_each`, among which a domain is dealt at random.

    The clients of the first domain come first. A domain's test rows are dealt to its clients likewise.
    """
    ids = column(samples, by)
    rows = grouped(ids.train, len(ids.names))
    small = [f"{name} has {len(own)}" for name, own in zip(ids.names, rows, strict=True) if 0 < len(own) < clients_each]
    if small:
        raise Refused(f"clients_each={clients_each} is more than the samples of a {by}: {', '.join(small)}; take fewer")
    present = [i for i, own in enumerate(rows) if len(own)]
    dealt = [part for i in present for part in np.array_split(rng.permutation(rows[i]), clients_each)]
    if not len(ids.test):
        return Dealt(dealt)
    tests = grouped(ids.test, len(ids.names))
    return Dealt(dealt, [part for i in present for part in np.array_split(rng.permutation(tests[i]), clients_each)])


def listed(samples: Samples, rng: Generator, *, path: str) -> Dealt:
    """The clients that a file lists.

    `.json`: a list of rows for every client, or an object of such lists by client name; or FedGloSS' and FedSAM's
    federated_train_alpha_*.json, whose img_N_label_L.png is row N of CIFAR-10 in its official order
    (those of CIFAR-100 name images by CIFAR's file names, and are refused). `.txt`, `.csv` or
    `.npy`: the client of every sample, one a line, in the order of the data; clients are sorted by it.
    """
    try:
        if Path(path).suffix == ".json":
            stored = json.loads(Path(path).read_text(encoding="utf-8"))
            known = isinstance(stored, dict) and "users_data" in stored
            rows = _glossed(stored, samples) if known else _lists(stored)
            return Dealt([_rows(name, own, len(samples.labels)) for name, own in rows])
        names = _names(Path(path))
    except (OSError, ValueError, EOFError) as error:  # ValueError: Refused, broken JSON, broken UTF-8
        raise Refused(f"cannot use {path} as a list of clients: {error}") from error
    if names.shape != samples.labels.shape:
        raise Refused(
            f"{path} has {len(names)} ids, the data {len(samples.labels)} samples: give one id a line, no head"
        )
    found, ids = np.unique(names, return_inverse=True)
    return Dealt(pools(ids.reshape(-1), len(found)))


def _names(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if path.suffix not in (".txt", ".csv"):
        raise Refused("it is no .json, .txt, .csv or .npy")
    return np.array(path.read_text(encoding="utf-8").splitlines())


def _lists(stored: Any) -> list[tuple[str, Any]]:
    if isinstance(stored, dict) and stored:
        return list(stored.items())
    if isinstance(stored, list) and stored:
        return [(str(i), rows) for i, rows in enumerate(stored)]
    raise Refused("it holds neither a list nor an object of lists of rows")


def _rows(name: str, rows: Any, many: int) -> np.ndarray:
    if not isinstance(rows, list) or not rows or not all(type(i) is int and 0 <= i < many for i in rows):
        raise Refused(f"client {name} holds something else than rows 0 to {many - 1}, or none")
    return np.array(rows, dtype=np.int64)


def _glossed(stored: Any, samples: Samples) -> list[tuple[str, list[int]]]:
    """Names such as img_1016_label_6.png; the label says whether it is the same data in the same order."""
    found: list[tuple[str, list[int]]] = []
    try:
        for name in stored["users"]:
            parts = [re.fullmatch(r"img_(\d+)_label_(\d+)\.\w+", text) for text in stored["users_data"][str(name)]["x"]]
            pairs = [(int(part[1]), int(part[2])) for part in parts if part]
            if len(pairs) < len(parts):
                raise Refused(f"client {name} has images that are not named img_N_label_L.png: give rows")
            found.append((str(name), [row for row, _ in pairs]))
            wrong = [row for row, label in pairs if row >= len(samples.labels) or samples.labels[row] != label]
            if wrong:
                raise Refused(
                    f"row {wrong[0]} has another label in this data: it is of other data, or of another order"
                )
    except (KeyError, TypeError) as error:
        raise Refused(f"it has no 'users' with 'users_data' of 'x' ({error})") from error
    return found
