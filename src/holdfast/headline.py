"""What a run is judged by, and what else is told of it: read off its rows, for every kind of data alike.

Nothing is imported here, for a report has to open quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]

# The first that a run's rows have is what it is judged by: the ranking where clicks are told from what was not clicked,
# for there the constant answer is 99 % accurate; the clients' own models where layers are private.
METRICS = ("auc", "personal_accuracy", "accuracy")
NAMES = {"auc": "AUC", "hr10": "HR@10", "ndcg10": "NDCG@10", "ndcg10_printed": "NDCG@10 as FedEve prints it"}
FURTHER = (
    "hr10", "ndcg10", "ndcg10_printed", "domain_accuracy", "corruption_accuracy", "client_accuracy", "client_sd",
    "client_worst_decile", "personal_sd", "personal_worst_decile",
)  # fmt: skip
GROUPS = ("domains", "corruptions")  # keys whose value is the accuracy of every group by its name
TAIL = 10  # evaluated rounds in the closing mean


def metric(rows: Rows) -> str:
    """`accuracy` where nothing has been evaluated yet."""
    return next((name for name in METRICS if any(name in row for row in rows)), METRICS[-1])


def label(name: str) -> str:
    return NAMES.get(name, name.replace("_", " "))


def curve(rows: Rows, name: str) -> list[float]:
    """A figure of all rounds that have it; one that is not finite is none."""
    return [row[name] for row in rows if row.get(name) is not None]


def further(rows: Rows) -> dict[str, float]:
    """What else was measured: means of the last ten evaluated rounds. Of clicks, client by client is left out.

    Right and wrong say little there, and no client has the candidates of another.
    """
    clicks = metric(rows) == "auc"
    names = [name for name in FURTHER if not (clicks and name.startswith(("client_", "personal_")))]
    return {name: mean(values[-TAIL:]) for name in names if (values := curve(rows, name))}


def last(rows: Rows) -> dict[str, float]:
    """The same figures of the last evaluated round."""
    return {name: curve(rows, name)[-1] for name in further(rows)}


def groups(rows: Rows, key: str) -> dict[str, float]:
    """Accuracy of every group, as means of the last ten evaluated rounds."""
    found = [row[key] for row in rows if row.get(key)][-TAIL:]
    return {name: mean([each[name] for each in found]) for name in (found[-1] if found else {})}


def mean(values: Iterable[float]) -> float:
    held = list(values)
    return sum(held) / len(held)
