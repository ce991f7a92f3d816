"""The Python side of `holdfast run`."""

from __future__ import annotations

import logging
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
    result = go(Run(**options), out, resume, set(options), tell, each or (lambda row: None))
    if not result.done:
        raise KeyboardInterrupt  # asked for during a round, which was finished and kept first
    return result


def tell(text: str) -> None:
    logging.getLogger("holdfast").info(text)
