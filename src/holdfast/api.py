"""The Python side of `holdfast run`."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from holdfast.errors import Refused
from holdfast.experiment import Run
from holdfast.results import Result, go


def run(
    *, out: str | Path | None = None, resume: bool = False, each: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> Result:  # fmt: skip
    """One experiment; the options are the fields of `Run`. `each` sees every round's row. Example:

    holdfast.run(method="scaffold + specgrad(r=0.05)", data="digits", rounds=20, seed=0).metrics
    """
    known = {field.name for field in fields(Run)}
    if wrong := [key for key in options if key not in known]:
        near = {key: difflib.get_close_matches(key, known, 1) for key in wrong}
        raise Refused(*(f"run has no option '{k}'" + (f"; did you mean {n[0]}?" if n else "") for k, n in near.items()))
    result = go(Run(**options), out, resume, set(options), tell, lambda row, _: each(row) if each else None)
    if result.remark:
        tell(result.remark)
    if not result.done:
        raise KeyboardInterrupt  # asked for during a round, which was finished and kept first
    return result


def tell(text: str) -> None:
    logging.getLogger("holdfast").info(text)
