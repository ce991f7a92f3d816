"""One experiment as a frozen value: checked as a whole, planned before its first round, and made ready to go."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from holdfast.check import sheet
from holdfast.data import sets, splits
from holdfast.data.plan import Work, sample
from holdfast.data.sets import Dataset
from holdfast.data.splits import Split
from holdfast.errors import Refused
from holdfast.execute import auto, tensors
from holdfast.method import Method
from holdfast.models import zoo
from holdfast.round import cast
from holdfast.simulate import Federation, State, gather
from holdfast.task import Batch, Task
from holdfast.text import made, one, parse

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Run:
    """What to do. Every field is an option of `holdfast run`; texts may be the objects they stand for."""

    method: str | Method = "fedavg"
    data: str | Dataset = "digits"
    split: str | Split = "dirichlet(alpha=0.1, clients=100)"
    model: str | nn.Module = "cnn"
    rounds: int = 50
    cohort: int | str = 10
    epochs: int = 1
    steps: int | None = None
    batch: int = 20
    lr: float = 0.1
    lr_decay: float = 1.0
    server_lr: float = 1.0
    drop_last: bool = False
    seed: int = 0
    eval_every: int = 1
    checkpoint_every: int = 10
    on_nan: str = "stop"
    engine: str = "auto"
    lanes: int = 0
    compile: bool = False
    threads: int = 0
    dtype: str = "float32"
    device: str = "cpu"

    def texts(self) -> dict[str, Any]:
        """The fields as they are written down."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        for key, value in found.items():
            if key == "method":  # with every option, so that a later default cannot change what it means
                found[key] = (parse(value) if isinstance(value, str) else value).text(full=True)
            elif isinstance(value, Split):
                found[key] = value.text
            elif isinstance(value, Dataset):
                found[key] = f"{value.name} (given in Python)"
            elif isinstance(value, nn.Module):
                found[key] = f"{type(value).__name__} (given in Python)"
        return found


@dataclass(frozen=True)
class Plan:
    """How it is computed, fixed before round 1: the same seed and plan give the same bits."""

    engine: str
    lanes: int
    compile: bool
    threads: int
    dtype: str
    device: str
    torch: str
    why: str


@dataclass(frozen=True, eq=False)
class Ready:
    run: Run
    plan: Plan
    federation: Federation
    split: Split
    facts: dict[str, Any]


def ready(run: Run, plan: Plan | None = None) -> Ready:
    """Checks everything and builds what the rounds need; all problems at once, and nothing is written."""
    problems = numbers(run)
    method = attempt(problems, lambda: wanted_method(run))
    data = attempt(problems, lambda: wanted_data(run.data))
    split = attempt(problems, lambda: wanted_split(run, data)) if data is not None else None
    module = attempt(problems, lambda: wanted_model(run, data)) if data is not None else None
    if data is None:
        problems += [*attempt_names(run)]
    if split is not None:
        problems += fits(run, split)
    if problems or method is None or data is None or split is None or module is None:
        raise Refused(*problems)
    return build(run, plan, method, data, split, module)


def numbers(run: Run) -> list[str]:
    """What is wrong with the plain options."""
    rules: list[tuple[str, bool, str]] = [
        (name, whole(getattr(run, name), 1), "must be a whole number of at least 1")
        for name in ("rounds", "epochs", "batch", "eval_every", "checkpoint_every")
    ]
    rules += [
        ("steps", run.steps is None or whole(run.steps, 1), "must be a whole number of at least 1"),
        ("seed", whole(run.seed, 0) and run.seed < 2**64, "must be a whole number from 0 to 2^64 - 1"),
        ("lanes", whole(run.lanes, 0), "must be a whole number; 0 lets the plan choose"),
        ("threads", whole(run.threads, 0), "must be a whole number; 0 takes torch's own"),
        ("lr", positive(run.lr), "must be a number above 0"),
        ("lr_decay", positive(run.lr_decay) and run.lr_decay <= 1, "must be a number above 0 and at most 1"),
        ("server_lr", positive(run.server_lr), "must be a number above 0"),
        ("on_nan", run.on_nan in ("stop", "drop"), "must be 'stop' or 'drop'"),
        ("engine", run.engine in ("auto", *auto.ENGINES), f"must be one of auto, {', '.join(auto.ENGINES)}"),
        ("dtype", run.dtype in DTYPES, f"must be one of {', '.join(DTYPES)}"),
        ("device", usable(run.device), "is not a device that torch can use here; take cpu"),
        ("drop_last", isinstance(run.drop_last, bool), "must be true or false"),
        ("compile", isinstance(run.compile, bool), "must be true or false"),
    ]
    found = [f"{name.replace('_', '-')}={getattr(run, name)!r} {reason}" for name, good, reason in rules if not good]
    attempt(found, lambda: cohort_of(run.cohort))
    return found


def whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def usable(device: Any) -> bool:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError):
        return False
    return device != "meta"


def attempt(problems: list[str], make: Any) -> Any:
    """The result, or None with the reasons added to the list."""
    try:
        return make()
    except Refused as refused:
        problems += refused.problems
        return None


def wanted_method(run: Run) -> Method:
    method = parse(run.method) if isinstance(run.method, str) else run.method
    if positive(run.server_lr) and run.server_lr != 1:
        method = method + made("server", {"lr": float(run.server_lr)})
    return method


def wanted_data(data: str | Dataset) -> Dataset:
    if isinstance(data, Dataset):
        return data
    call = one(data, "data set")
    return sets.load(call.name, call.options)


def wanted_split(run: Run, data: Dataset) -> Split:
    if isinstance(run.split, Split):
        return within(run.split, data)
    if run.split.endswith(".json"):
        return within(Split.load(run.split), data)
    call = one(run.split, "split")
    return splits.make(call.name, call.options, data.y, data.classes, run.seed, run.split)


def within(split: Split, data: Dataset) -> Split:
    largest = max((int(rows.max()) for rows in split.clients if len(rows)), default=-1)
    if largest >= len(data.y):
        raise Refused(f"the split names sample {largest}, and {data.name} has {len(data.y)}; it is of another data set")
    return split


def wanted_model(run: Run, data: Dataset) -> nn.Module:
    if isinstance(run.model, nn.Module):
        return run.model
    call = one(run.model, "model")
    return zoo.build(call.name, call.options, data.shape, data.classes, run.seed)


def attempt_names(run: Run) -> list[str]:
    """Where the data is missing, split and model can still be checked for what needs no data."""
    problems: list[str] = []
    for text, kind in ((run.split, "split"), (run.model, "model")):
        if isinstance(text, str):
            attempt(problems, lambda text=text, kind=kind: one(text, kind))
    return problems


def fits(run: Run, split: Split) -> list[str]:
    """What is wrong between the cohort and the population."""
    many, clients = attempt([], lambda: cohort_of(run.cohort)), len(split.clients)
    if isinstance(many, int) and many > clients:
        return [f"cohort={many} is more than the {clients} clients of {split.text}; take at most {clients}"]
    return []


def cohort_of(text: int | str) -> int | float:
    """A number of clients, or the probability of `bernoulli(p)`."""
    if isinstance(text, str) and text.strip().isdigit():
        text = int(text)
    if isinstance(text, int) and whole(text, 1):
        return text
    chance = re.fullmatch(r"\s*bernoulli\(\s*(?:p\s*=\s*)?([0-9.eE+-]+)\s*\)\s*", str(text))
    with contextlib.suppress(ValueError):
        if chance and 0 < float(chance[1]) <= 1:
            return float(chance[1])
    raise Refused(f"cohort={text!r} must be a number of clients, such as 10, or bernoulli(0.1) with 0 < p <= 1")


def build(run: Run, plan: Plan | None, method: Method, data: Dataset, split: Split, module: nn.Module) -> Ready:
    task = Task.of(module, dtype=DTYPES[run.dtype])
    task = task.keeping(method.private(task.layout)).on(run.device)
    counts = torch.from_numpy(split.counts(data.y, data.classes))
    data = data.to(run.device)
    rows = Batch(data.prepare(data.x[:2], task.start.dtype), data.y[:2], torch.ones(2, dtype=torch.bool))
    costs = sheet(method, task, rows, len(split.clients))
    work = Work(run.batch, run.epochs, run.steps, run.drop_last)
    fed = Federation(
        method, task, data, split.clients, counts, work, cohort_of(run.cohort), run.lr, run.lr_decay, run.seed, costs,
        auto.Loop(method, task), tensors(method, run.device), run.on_nan, run.eval_every,
    )  # fmt: skip
    plan = plan or planned(run, fed)
    chosen = auto.Choice(plan.engine, plan.lanes, plan.why)
    fed = replace(fed, execute=auto.make(chosen, method, task, plan.compile))
    facts = {
        "parameters": task.layout.size,
        "clients": len(split.clients),
        "split_sha256": split.hash,
        "data_sha256": digest(data.x, data.y, data.test_x, data.test_y),
        "start_sha256": digest(task.start),
    }
    return Ready(run, plan, fed, split, facts)


def planned(run: Run, fed: Federation) -> Plan:
    """The engine that was asked for or that the table names; where a model cannot be mapped, the loop, and why."""
    many = fed.cohort if isinstance(fed.cohort, int) else math.ceil(fed.cohort * len(fed.clients))
    name = one(run.model, "model").name if isinstance(run.model, str) else type(run.model).__name__
    choice = auto.choose(name, math.prod(fed.data.shape), many, run.device)
    if run.engine != "auto":
        choice = auto.Choice(
            run.engine, 1 if run.engine == "loop" else min(many, auto.LANES), f"{run.engine}: asked for"
        )
    if choice.engine == "batched":
        reason = unmappable(fed)
        if reason and run.engine == "batched":
            raise Refused(f"engine=batched: this model cannot be mapped over clients ({reason}); take --engine loop")
        if reason:
            choice = auto.Choice("loop", 1, f"loop: this model cannot be mapped over clients ({reason})")
    lanes = run.lanes or choice.lanes if choice.engine == "batched" else 1
    threads = run.threads or torch.get_num_threads()
    compiled = run.compile and choice.engine == "batched"
    return Plan(choice.engine, lanes, compiled, threads, run.dtype, run.device, torch.__version__, choice.why)


def unmappable(fed: Federation) -> str:
    state = State.of(fed)
    ids = sample(fed.seed, 0, len(fed.clients), fed.cohort)
    down = cast(fed.method.bound(fed.options), state.server, torch.tensor(fed.lr, dtype=state.server.w.dtype))
    return auto.trial(fed.method, fed.task, fed.options, down, gather(fed, state, 0, ids), fed.feed)


def digest(*tensors: torch.Tensor) -> str:
    """A hash that changes when any value does."""
    found = hashlib.sha256()
    for t in tensors:
        found.update(f"{t.dtype}{tuple(t.shape)}".encode())
        found.update(np.ascontiguousarray(t.detach().cpu().numpy()).tobytes())
    return found.hexdigest()
