"""A split: which samples every client holds, made by a rule from a seed, stored with its hash."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator, Philox

from holdfast.data import rules
from holdfast.data.named import nearest, option_problems
from holdfast.errors import Refused

RULES: dict[str, Callable[..., list[np.ndarray]]] = {
    "iid": rules.iid,
    "dirichlet": rules.dirichlet,
    "classes": rules.classes,
}
_FILLED = 3  # labels, number of classes and generator, which are no options


@dataclass(frozen=True, eq=False)
class Split:
    """Sample indices of every client. `recycled` may hold a sample twice; all other rules hold it once at most."""

    text: str
    clients: tuple[np.ndarray, ...]  # int64
    seed: int

    @property
    def hash(self) -> str:
        """sha256 of the number of clients, their sizes and their indices, as little-endian int64."""
        sizes = [len(indices) for indices in self.clients]
        numbers = np.concatenate([np.array([len(sizes), *sizes], dtype=np.int64), *self.clients])
        return hashlib.sha256(numbers.astype("<i8").tobytes()).hexdigest()

    def counts(self, labels: Any, classes: int) -> np.ndarray:
        """Samples of every class at every client, [N, C]."""
        labels = np.asarray(labels)
        beyond = max((int(indices.max()) for indices in self.clients if len(indices)), default=-1)
        if beyond >= len(labels):
            raise Refused(
                f"split {self.text} names sample {beyond}, the data has {len(labels)}: it was made for other data, "
                "make it anew"
            )
        return np.stack([np.bincount(labels[indices], minlength=classes) for indices in self.clients])

    def summary(self, labels: Any, classes: int) -> dict[str, float]:
        """What to report with every number. `heterogeneity` is H = (1/N) sum_i (1/M) sum_j (p_ij - p_j)^2.

        p_ij is the share of class j at client i, p_j its mean over the clients; a client without samples has no
        shares and is left out of H.
        """
        counts = self.counts(labels, classes)
        sizes = counts.sum(axis=1)
        shares = counts[sizes > 0] / sizes[sizes > 0, None]
        return {
            "clients": len(sizes),
            "size_min": int(sizes.min()),
            "size_mean": float(sizes.mean()),
            "size_max": int(sizes.max()),
            "distinct": len(np.unique(np.concatenate(self.clients))),
            "classes_mean": float((counts > 0).sum(axis=1).mean()),
            "empty": int((sizes == 0).sum()),
            "heterogeneity": float(((shares - shares.mean(axis=0)) ** 2).mean()) if len(shares) else 0.0,
        }

    def save(self, path: str | os.PathLike[str], counts: np.ndarray | None = None) -> None:
        """Writes split.json whole or not at all; with `counts`, also the samples of every class at every client."""
        path = Path(path)
        head = {"text": self.text, "seed": self.seed, "hash": self.hash, "samples": sum(map(len, self.clients))}
        tables = {"clients": self.clients} | ({} if counts is None else {"counts": counts})
        content = json.dumps(head, indent=1)[:-2]
        for name, rows in tables.items():
            lines = ",\n".join(json.dumps(row.tolist(), separators=(",", ":")) for row in rows)
            content += f',\n "{name}": [\n{lines}\n ]'
        content += "\n}\n"
        draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with open(draft, "w", encoding="utf-8") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Split:
        """Reads what `save` wrote and verifies its hash."""
        try:
            return _read(json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:  # ValueError: Refused, broken JSON, broken UTF-8
            raise Refused(f"cannot use {path} as a split: {error}; make the split anew or restore the file") from error


def make(name: str, options: Mapping[str, Any], labels: Any, classes: int, seed: int, text: str) -> Split:
    """Deals the samples by the rule of this name. Same seed, same split; the global generators are left alone.

    NumPy may change what a Generator draws in a later release, so a split that matters is saved, not remade.
    """
    if name not in RULES:
        raise Refused(f"unknown split '{name}': {nearest(name, RULES)}")
    problems = option_problems(name, RULES[name], options, given=_FILLED)
    labels = np.asarray(labels)
    is_list = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not is_list or (labels.size and not 0 <= labels.min() <= labels.max() < classes):
        problems.append(f"the labels to split are no list of class numbers 0 to {classes - 1}: check the data set")
    if problems:
        raise Refused(*problems)
    dealt = RULES[name](labels, classes, _generator(seed), **options)
    return Split(text, tuple(np.asarray(indices, dtype=np.int64) for indices in dealt), seed)


def check(name: str, options: Mapping[str, Any]) -> None:
    """Refuses what is wrong with a rule and its options whatever the data is."""
    if name not in RULES:
        raise Refused(f"unknown split '{name}': {nearest(name, RULES)}")
    problems = option_problems(name, RULES[name], options, given=_FILLED) or rules.value_problems(RULES[name], options)
    if problems:
        raise Refused(*problems)


def _generator(seed: int) -> Generator:
    """Its own stream: the same seed may steer models and batches without being correlated with the split."""
    digest = hashlib.sha256(f"holdfast split {seed}".encode()).digest()
    return Generator(Philox(key=int.from_bytes(digest[:16], "little")))


def _read(stored: object) -> Split:
    expected = {"text": str, "seed": int, "hash": str, "samples": int, "clients": list}
    if not isinstance(stored, dict):
        raise Refused("it holds no JSON object")
    wrong = [key for key, kind in expected.items() if not isinstance(stored.get(key), kind)]
    if wrong:
        raise Refused(f"it is no split of holdfast ({', '.join(wrong)} missing or of a wrong type)")
    if not stored["clients"]:
        raise Refused("it has no clients")
    split = Split(stored["text"], tuple(_indices(i, row) for i, row in enumerate(stored["clients"])), stored["seed"])
    samples = sum(map(len, split.clients))
    if samples != stored["samples"]:
        raise Refused(f"it is damaged (samples says {stored['samples']}, the clients hold {samples})")
    if split.hash != stored["hash"]:
        raise Refused(f"it is damaged (hash says {stored['hash'][:12]}, the indices give {split.hash[:12]})")
    return split


def _indices(client: int, row: object) -> np.ndarray:
    plain = isinstance(row, list) and all(type(i) is int and 0 <= i < 2**63 for i in row)
    if not plain:
        raise Refused(f"client {client} holds something else than sample numbers")
    return np.array(row, dtype=np.int64)
