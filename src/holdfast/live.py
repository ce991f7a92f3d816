"""Progress: a bar that lives on a terminal, plain lines where output is piped, JSON where it is asked for."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import Any

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

    def round(self, row: Row, rounds: int = 0, label: str = "") -> None:
        if self.as_json:
            print(json.dumps({"run": label, **row} if label else row), flush=True)
        elif self.bar:
            if self.task is None:
                self.task = self.bar.add_task(label, total=rounds or None)
            self.bar.update(self.task, completed=row["round"], total=rounds or None, description=f"{label} {line(row)}")
        else:
            print(f"{label:<40} {line(row)}" if label else line(row), flush=True)


def bar() -> Any:
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    text = TextColumn("{task.description}", markup=False)
    return Progress(BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), text)


def line(row: Row) -> str:
    """One round for a person."""
    score = [f"{name.replace('_', ' ')} {row[name]:.4f}" for name in ("accuracy", "personal_accuracy") if name in row]
    loss = "" if row["train_loss"] is None else f"  train loss {row['train_loss']:.4f}"
    why = f" ({row['dropped_why']})" if row.get("dropped_why") else ""
    dropped = f"  dropped {row['dropped']}{why}" if "dropped" in row else ""
    remark = f"  {row['remark']}" if "remark" in row else ""
    return f"round {row['round']:>4}  {'  '.join(score)}{loss}  {row['train_seconds']:.2f} s{dropped}{remark}"
