"""The Python side of `holdfast run`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.experiment import Run
from holdfast.results import Result, go


def run(
    *, out: str | Path | None = None, resume: bool = False, each: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> Result:  # fmt: skip
    """One experiment; the options are the fields of `Run`. `each` sees every round's row. Example:

    holdfast.run(method="scaffold + specgrad(r=0.05)", data="digits", rounds=20, seed=0).metrics
    """
    return go(Run(**options), out, resume, set(options), each=each or (lambda row: None))
