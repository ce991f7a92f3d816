"""Progress: a bar that lives on a terminal, plain lines where output is piped, JSON where it is asked for."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import Any

from holdfast import headline

Row = dict[str, Any]


class Live:
    """What a person sees while rounds go by. Without `rich`, or piped, it is one line a round."""

    def __init__(self, as_json: bool = False, label: str = ""):
        self.as_json, self.label = as_json, label
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Live:
        if not self.as_json and sys.stdout.isatty():
            self.bar = bar()
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def tell(self, text: str) -> None:
        if self.bar:
            self.bar.console.print(text, style="dim", markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def round(self, row: Row, rounds: int = 0, label: str = "", turn: str = "") -> None:
        """`label` names the run, `turn` says which of how many it is."""
        if self.as_json:
            print(json.dumps({"run": label, **row} if label else row), flush=True)
        elif self.bar:
            if self.task is None:
                self.task = self.bar.add_task(label, total=rounds or None)
            where = f"run {turn}: {label}" if turn else label
            text = f"{where}  {brief(row)}" if where else brief(row)
            self.bar.update(self.task, completed=row["round"], total=rounds or None, description=text)
        else:
            print(f"{label:<40} {line(row)}" if label else line(row), flush=True)


def bar() -> Any:
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column
    except ImportError:
        return None
    # Where the terminal is narrow the text gives way, not the count and the time that is left.
    text = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
    )
    count, left = (kind(table_column=Column(no_wrap=True)) for kind in (MofNCompleteColumn, TimeRemainingColumn))
    return Progress(BarColumn(12, table_column=Column(no_wrap=True)), count, left, text, expand=True)


def scores(row: Row) -> str:
    name = headline.metric([row])
    return f"{headline.label(name)} {row[name]:.4f}" if row.get(name) is not None else ""


def losses(row: Row) -> str:
    return "" if row["train_loss"] is None else f"  train loss {row['train_loss']:.4f}"


def dropped(row: Row) -> str:
    why = f" ({row['dropped_why']})" if row.get("dropped_why") else ""
    return f"  dropped {row['dropped']}{why}" if "dropped" in row else ""


def brief(row: Row) -> str:
    """One round beside a bar that counts it."""
    return scores(row) + dropped(row) + losses(row)


def line(row: Row) -> str:
    """One round for a person."""
    remark = f"  {row['remark']}" if "remark" in row else ""
    return f"round {row['round']:>4}  {scores(row)}{losses(row)}  {row['train_seconds']:.2f} s{dropped(row)}{remark}"
