"""Federated learning on heterogeneous data: methods as sums of parts."""

from __future__ import annotations

import os

# MKL adds in another order where memory is aligned otherwise, so that a client's bits would depend on its lane. Its
# strict mode does not, and costs nothing measurable; it is heard until the first matrix product of the process.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

TYPE_CHECKING = False  # as typing has it, which takes its time to import
if TYPE_CHECKING:
    from typing import Any

    from holdfast.api import run
    from holdfast.data.columns import Column
    from holdfast.data.sets import Dataset
    from holdfast.errors import Failed, Refused
    from holdfast.experiment import Run
    from holdfast.method import Method
    from holdfast.results import Result
    from holdfast.text import parse

__version__ = "0.1.0.dev0"
__all__ = ["Column", "Dataset", "Failed", "Method", "Refused", "Result", "Run", "parse", "run"]

_HOMES = {
    "Column": "data.columns", "Dataset": "data.sets", "Failed": "errors", "Method": "method", "Refused": "errors",
    "Result": "results", "Run": "experiment", "parse": "text", "run": "api",
}  # fmt: skip


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> Any:
    """Loads what is asked for when it is asked for, so that the command line starts without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"holdfast.{_HOMES[name]}"), name)
