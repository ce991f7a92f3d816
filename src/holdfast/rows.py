"""`metrics.jsonl`: one object a round, read back or refused with the line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from holdfast.errors import Refused

Row = dict[str, Any]
LIMIT = 1e6  # of a loss, in losses of a model that guesses, ln(classes)
WRECK = "a loss that is not finite or above a million times ln(classes)"
LOSSES = ("train_loss", "loss")


def plain(row: Row) -> Row:
    """JSON has no NaN: a figure that is not finite is null."""
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in row.items()}


def marked(row: Row, classes: int) -> Row:
    """With `diverged` where a loss is beyond all sense; a round in which nobody trained has none."""
    given = [row[key] for key in LOSSES if key in row and (key != "train_loss" or row.get("trained"))]
    wreck = any(loss is None or loss > LIMIT * math.log(max(classes, 2)) for loss in given)
    return row | {"diverged": True} if wreck else row


def broke(rows: list[Row]) -> int:
    """The first round that diverged; 0 if none did."""
    return next((row["round"] for row in rows if row.get("diverged")), 0)


def holes(rows: list[Row], done: int) -> str:
    """'lacks rows of rounds that are done (2, 3)'; empty if it lacks none."""
    gone = sorted(set(range(1, done + 1)) - {row["round"] for row in rows})
    listed = ", ".join(map(str, gone[:8])) + (", ..." if len(gone) > 8 else "")
    return f"lacks rows of rounds that are done ({listed})" if gone else ""


def damaged(path: Path, reason: str, advice: str) -> Refused:
    return Refused(f"{path} cannot be read: {reason}; {advice}")


def content(path: Path, advice: str) -> str:
    try:
        return (raw := path.read_bytes()).decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise damaged(path, f"line {line} is not UTF-8 text", advice) from error
    except OSError as error:
        raise damaged(path, error.strerror or str(error), advice) from error


def read(path: Path, advice: str) -> list[Row]:
    """The rows in their order. A last line without its end is of a round that was just being written, and no row."""
    if not path.exists():
        return []
    found: list[Row] = []
    whole = content(path, advice).rpartition("\n")[0]
    for number, line in enumerate(whole.split("\n") if whole else [], 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise damaged(path, f"line {number} is torn", advice) from error
        least = found[-1]["round"] + 1 if found else 1
        if not isinstance(row, dict) or type(row.get("round")) is not int or row["round"] < least:
            raise damaged(path, f"line {number} is not the row of round {least} or a later one", advice)
        found.append(row)
    return found
