"""Which executor suits a run: read from a committed table of measurements, never from a clock."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import nn

from holdfast.errors import Refused
from holdfast.execute import Cohort, Executor, Feed, Options
from holdfast.execute.batched import Batched
from holdfast.execute.blame import blamed
from holdfast.execute.cluster import EXTRA, Cluster, installed
from holdfast.execute.loop import Loop
from holdfast.execute.shards import SHARDS as SHARDS
from holdfast.execute.shards import Ray
from holdfast.method import Method
from holdfast.round import Down
from holdfast.task import Task
from holdfast.vector import mapped

ENGINES = ("loop", "batched", "ray")
LANES = 64  # as many clients at once as the batched executor takes on a CPU


@dataclass(frozen=True)
class Choice:
    engine: str
    lanes: int
    why: str


@cache
def measured() -> list[dict[str, Any]]:
    """Rows of model, sample size, clients a round, and how many times faster than `loop` the batched executor was."""
    return json.loads(files("holdfast.execute").joinpath("engines.json").read_text())["rows"]


def choose(model: str, size: int, cohort: int, device: str, taken: bool = False) -> Choice:
    """For a model by name (one of the table's), samples of so many numbers, and a number of clients a round.

    `taken`: the model is none of the table, only taken for one.
    """
    if device != "cpu":
        return Choice("batched", min(cohort, 64), f"batched: {device} steps many clients at once")
    rows = [row for row in measured() if row["model"] == model]
    row = min(rows, key=lambda row: abs(math.log(row["size"] / size)) + abs(math.log(row["cohort"] / cohort)))
    speed, at = f"{row['ratio']:.2f}x the speed of loop", f"with {row['cohort']} clients and {row['size']} inputs"
    if (row["size"], row["cohort"]) != (size, cohort):
        at += ", the nearest measured"
    faster = row["ratio"] > 1
    if taken:
        said = f"taken for {model}, which was measured {speed}{'' if faster else ' batched'} {at}"
    else:
        said = f"{'' if faster else 'batched '}measured {speed} for {model} {at}"
    return Choice("batched", min(cohort, LANES), f"batched: {said}") if faster else Choice("loop", 1, f"loop: {said}")


def like(name: str, module: nn.Module) -> str:
    """The model of the table that a model is taken for: itself, or one with convolutions, or one without."""
    if any(row["model"] == name for row in measured()):
        return name
    return "cnn" if any(isinstance(m, nn.modules.conv._ConvNd) for m in module.modules()) else "mlp"


def make(choice: Choice, method: Method, task: Task, compiled: bool, cluster: Cluster | None = None) -> Executor:
    if choice.engine == "loop":
        return Loop(method, task)
    if choice.engine == "batched":
        return Batched(method, task, choice.lanes, compiled)
    if not installed():
        raise Refused(EXTRA)
    return Ray(method, task, choice.lanes, compiled, cluster or Cluster())


def start(execute: Executor, feed: Feed) -> None:
    """What an executor needs besides this process, so that it is refused before a run begins."""
    if isinstance(execute, Ray):
        execute.start(feed)


def happened(execute: Executor) -> str:
    """What befell an executor that a person should know; no result differs for it."""
    return "; ".join(execute.happened()) if isinstance(execute, Ray) else ""


def trial(method: Method, task: Task, options: Options, down: Down, cohort: Cohort, feed: Feed) -> str:
    """Why a model cannot be mapped over clients; empty if it can. Steps two clients once, on two rows each."""
    index, live = (table[:2, :1, :2] for table in (cohort.index, cohort.live))  # more rows only take memory
    few = mapped(lambda t: t[:2], cohort)._replace(index=index, live=live)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch's own, of what it has no mapped kernel for
            Batched(method, task, 2).together(options, down, few, feed)
    except Refused:
        raise
    except Exception as error:
        said = str(error).strip().splitlines()[0]
        return blamed(error) + ("it decides by the values of tensors" if "data-dependent" in said else said)
    return ""
