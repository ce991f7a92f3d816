"""The catalogue of data sets: the ENTRIES of every module of `holdfast.data.readers`, by name."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from holdfast.data import readers
from holdfast.data.readers.entry import Entry


@cache
def catalog() -> dict[str, Entry]:
    """Every entry by its name, in alphabetical order."""
    found: dict[str, Entry] = {}
    for module in pkgutil.iter_modules(readers.__path__):
        entries = getattr(importlib.import_module(f"{readers.__name__}.{module.name}"), "ENTRIES", ())
        for entry in entries:
            assert entry.name not in found, f"two readers have an entry {entry.name}"
            found[entry.name] = entry
    return dict(sorted(found.items()))
