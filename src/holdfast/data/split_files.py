"""split.json: written whole or not at all, verified when read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.dealing import Dealt, Ranges
from holdfast.errors import Refused

VERSION = 2  # 1, without the field, had no tests
PARTS = ("test", "train")


def digest(clients: Sequence[np.ndarray], tests: Sequence[np.ndarray], tests_from: str) -> str:
    """sha256 of the number of clients, their sizes and their rows, as little-endian int64.

    Own test rows follow in the same form, behind 0 or 1 for the part that they are rows of; without any, nothing does.
    """
    if isinstance(clients, Ranges):
        return hashlib.sha256(f"{clients.clients} clients of {clients.each}".encode()).hexdigest()
    numbers = _numbers(clients)
    if len(tests):
        numbers += [np.array([PARTS.index(tests_from)]), *_numbers(tests)]
    return hashlib.sha256(np.concatenate(numbers).astype("<i8").tobytes()).hexdigest()


def _numbers(rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    sizes = [len(own) for own in rows]
    return [np.array([len(sizes), *sizes], dtype=np.int64), *rows]


def write(path: Path, head: Mapping[str, Any], tables: Mapping[str, Sequence[np.ndarray]]) -> None:
    """One line a row, so that a person can read it and a diff shows which client changed; ranges as two numbers."""
    own = tables["clients"]
    if isinstance(own, Ranges):
        head = {**head, "ranges": [own.clients, own.each]}
        tables = {name: rows for name, rows in tables.items() if name != "clients"}
    head = {"version": VERSION, **head}
    head["seal"] = seal({**head, **{name: [row.tolist() for row in rows] for name, rows in tables.items()}})
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


def seal(stored: Mapping[str, Any]) -> str:
    """sha256 of all that is in the file, but for the rows, which have their own hash."""
    told = {key: value for key, value in stored.items() if key not in ("clients", "tests", "seal")}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def read(path: Path) -> tuple[str, int, Dealt]:
    """Text, seed and rows."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(stored, dict):
        raise Refused("it holds no JSON object")
    rows = "ranges" if "ranges" in stored else "clients"
    expected = {"text": str, "seed": int, "hash": str, "samples": int, rows: list}
    version = stored.get("version", 1)
    if not isinstance(version, int) or version > VERSION:
        raise Refused(f"it is of version {version!r}, and this Holdfast reads up to {VERSION}: take a newer Holdfast")
    wrong = [key for key, kind in expected.items() if not isinstance(stored.get(key), kind)]
    if wrong:
        raise Refused(f"it is no split of holdfast ({', '.join(wrong)} missing or of a wrong type)")
    if not stored[rows]:
        raise Refused("it has no clients")
    dealt = Dealt(_ranges(stored[rows])) if rows == "ranges" else Dealt(_rows(stored[rows], "client"), *_tests(stored))
    samples = count(dealt.clients)
    if samples != stored["samples"]:
        raise Refused(f"it is damaged (samples says {stored['samples']}, the clients hold {samples})")
    found = digest(*dealt)
    if found != stored["hash"]:
        raise Refused(f"it is damaged (hash says {stored['hash'][:12]}, the indices give {found[:12]})")
    if "seal" in stored and stored["seal"] != seal(stored):  # older files have none
        raise Refused("it is damaged (what stands beside the indices is not what its seal says)")
    return stored["text"], stored["seed"], dealt


def count(clients: Sequence[np.ndarray]) -> int:
    return clients.clients * clients.each if isinstance(clients, Ranges) else sum(map(len, clients))


def _ranges(stored: list[Any]) -> Ranges:
    if len(stored) != 2 or not all(type(n) is int and n >= 1 for n in stored):
        raise Refused("its ranges are not a number of clients and a number of samples each")
    return Ranges(*stored)


def _tests(stored: Mapping[str, Any]) -> tuple[tuple[np.ndarray, ...], str]:
    tests, source = stored.get("tests", []), stored.get("tests_from", "test")
    if not isinstance(tests, list) or source not in PARTS or len(tests) not in (0, len(stored["clients"])):
        raise Refused("it is no split of holdfast (tests is not one list of rows a client)")
    return _rows(tests, "the tests of client"), source


def _rows(rows: Sequence[Any], what: str) -> tuple[np.ndarray, ...]:
    for i, row in enumerate(rows):
        if not isinstance(row, list) or not all(type(n) is int and 0 <= n < 2**63 for n in row):
            raise Refused(f"{what} {i} holds something else than sample numbers")
    return tuple(np.array(row, dtype=np.int64) for row in rows)
