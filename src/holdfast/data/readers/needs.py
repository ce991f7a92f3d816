"""Packages that only some readers need."""

from __future__ import annotations

import importlib
from types import ModuleType

from holdfast.errors import Refused


def package(name: str, extra: str) -> ModuleType:
    """The module, or a refusal that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refused(
            f'{name.split(".")[0]} is needed to read this ({error}): pip install "holdfast[{extra}]"'
        ) from None
