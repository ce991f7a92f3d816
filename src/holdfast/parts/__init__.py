"""One part a file; this folder's listing is the catalogue. A new part is a new file here and nothing else."""

from __future__ import annotations

import importlib
import pkgutil

from holdfast.method import REGISTRY

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["REGISTRY"]
