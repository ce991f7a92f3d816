"""A split: which samples every client holds, made by a rule from a seed, stored with its hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator, Philox

from holdfast.data import corrupted, dirichlet, flower_splits, natural, rules, split_files
from holdfast.data.dealing import Dealt, Ranges, Samples, refuse, refuse_empty
from holdfast.data.measures import measured
from holdfast.data.named import nearest, option_problems
from holdfast.data.values import value_problems
from holdfast.errors import Refused

RULES: dict[str, Callable[..., Dealt]] = {
    "iid": rules.iid,
    "dirichlet": dirichlet.dirichlet,
    "classes": rules.classes,
    "class_split": rules.class_split,
    "shards": rules.shards,
    "quantity": rules.quantity,
    "natural": natural.natural,
    "leave_one_out": natural.leave_one_out,
    "domains": natural.domains,
    "corruptions": corrupted.corruptions,
    "listed": natural.listed,
    "own": rules.own,
}
_FILLED = 2  # samples and generator, which are no options


@dataclass(frozen=True, eq=False)
class Split:
    """Sample indices of every client. `recycled` may hold a sample twice; all other rules hold it once at most.

    `tests` are each client's own test rows, where the rule knows them: of the data's test part, or held out of its
    training part (`tests_from` 'test' or 'train').
    """

    text: str
    clients: Sequence[np.ndarray]  # int64
    seed: int
    tests: Sequence[np.ndarray] = ()
    tests_from: str = "test"

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many samples every client holds."""
        if isinstance(self.clients, Ranges):
            return np.full(self.clients.clients, self.clients.each)
        return np.array([len(rows) for rows in self.clients])

    @property
    def hash(self) -> str:
        """sha256 of the number of clients, their sizes and their indices, and of the tests where there are any."""
        return split_files.digest(self.clients, self.tests, self.tests_from)

    def counts(self, labels: Any, classes: int) -> np.ndarray:
        """Samples of every class at every client, [N, C]."""
        labels = np.asarray(labels)
        held_out = self.tests if self.tests_from == "train" else ()
        beyond = max((int(rows.max()) for rows in (*self.clients, *held_out) if len(rows)), default=-1)
        if beyond >= len(labels):
            raise Refused(
                f"split {self.text} names sample {beyond}, the data has {len(labels)}: it was made for other data, "
                "make it anew"
            )
        return np.stack([np.bincount(labels[rows], minlength=classes) for rows in self.clients])

    def summary(self, labels: Any, classes: int) -> dict[str, float]:
        """What to report with every number: sizes, class totals and how unlike the clients are; see `measured`."""
        return self.measures(self.counts(labels, classes), len(labels))

    def measures(self, counts: np.ndarray, samples: int) -> dict[str, float]:
        """The summary, from the `counts` of these samples.

        `tested` clients have test rows of their own, `test_rows` together; held out ones are not `unused`.
        """
        found = measured(counts, self.clients, samples)
        tests = sum(map(len, self.tests))
        found["unused"] -= tests if self.tests_from == "train" else 0
        return found | {"tested": sum(len(rows) > 0 for rows in self.tests), "test_rows": tests}

    def save(
        self,
        path: str | os.PathLike[str],
        counts: np.ndarray | None = None,
        measures: Mapping[str, float] | None = None,
    ) -> None:
        """Writes split.json whole or not at all; with `counts` and `measures`, also what a report shows of it."""
        head: dict[str, Any] = {"text": self.text, "seed": self.seed, "hash": self.hash}
        head |= {} if measures is None else {"measures": dict(measures)}
        tables: dict[str, Any] = {"clients": self.clients}
        if len(self.tests):
            head, tables = head | {"tests_from": self.tests_from}, tables | {"tests": self.tests}
        tables |= {} if counts is None else {"counts": counts}
        split_files.write(Path(path), head | {"samples": split_files.count(self.clients)}, tables)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Split:
        """Reads what `save` wrote and verifies its hash."""
        try:
            text, seed, dealt = split_files.read(Path(path))
        except (OSError, ValueError, RecursionError) as error:  # ValueError: Refused, broken JSON, broken UTF-8
            said = error.strerror if isinstance(error, OSError) else error
            raise Refused(f"cannot use {path} as a split: {said}; make the split anew or restore the file") from error
        return cls(text, dealt.clients, seed, dealt.tests, dealt.tests_from)


def make(name: str, options: Mapping[str, Any], samples: Samples, seed: int, text: str) -> Split:
    """Deals the samples by the rule of this name. Same seed, same split; the global generators are left alone.

    `flower:NAME` is a partitioner of Flower Datasets. NumPy may change what a Generator draws in a later release, so a
    split that matters is saved, not remade.
    """
    problems = option_value_problems(name, options)
    if samples.source is not None and name != "own":
        problems.append(f"split {text}: this data set makes samples when their client comes; its split is 'own'")
    labels = np.asarray(samples.labels)
    samples = samples._replace(labels=labels)
    is_list = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not is_list or (labels.size and not 0 <= labels.min() <= labels.max() < samples.classes):
        problems.append(
            f"the labels to split are no list of class numbers 0 to {samples.classes - 1}: check the data set"
        )
    refuse(problems)
    if name.startswith(flower_splits.PREFIX):
        dealt = flower_splits.flower(name, options, samples, seed)
    else:
        dealt = RULES[name](samples, _generator(seed), **options)
    if isinstance(dealt.clients, Ranges):
        return Split(text, dealt.clients, seed)
    if options.get("empty") != "allow":  # the rules say it better; nothing gets past here
        refuse_empty(np.array([len(rows) for rows in dealt.clients]), text, "another seed or fewer clients")
    clients, tests = (tuple(np.asarray(rows, dtype=np.int64) for rows in part) for part in dealt[:2])
    return Split(text, clients, seed, tests, dealt.tests_from)


def check(name: str, options: Mapping[str, Any]) -> None:
    """Refuses what is wrong with a rule and its options whatever the data is."""
    refuse(option_value_problems(name, options))


def option_value_problems(name: str, options: Mapping[str, Any]) -> list[str]:
    if name.startswith(flower_splits.PREFIX):
        return flower_splits.problems(name, options)
    if name not in RULES:
        known = [*RULES, "flower:DirichletPartitioner", "a split.json"]
        raise Refused(f"unknown split '{name}': {nearest(name, known)}")
    return option_problems(name, RULES[name], options, given=_FILLED) or value_problems(RULES[name], options)


def _generator(seed: int) -> Generator:
    """Its own stream: the same seed may steer models and batches without being correlated with the split."""
    digest = hashlib.sha256(f"holdfast split {seed}".encode()).digest()
    return Generator(Philox(key=int.from_bytes(digest[:16], "little")))
