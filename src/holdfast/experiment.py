"""One experiment as a frozen value: checked as a whole, planned before its first round, and made ready to go."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import nn

from holdfast.batchnorm import policy
from holdfast.check import sheet
from holdfast.data.augment import augmentation
from holdfast.data.described import Described, described
from holdfast.data.named import expression
from holdfast.data.plan import Work, generator, sample
from holdfast.data.proxy import parted
from holdfast.data.sets import Dataset
from holdfast.data.splits import Split
from holdfast.errors import Problem, Refused
from holdfast.execute import auto, sums, tensors
from holdfast.execute.cluster import Cluster
from holdfast.fitting import fitting
from holdfast.hashed import digest as digest
from holdfast.kinds import KINDS as KINDS_OF
from holdfast.method import Method
from holdfast.options import DTYPES, GIVEN, attempt, cohort_of, drift_of, numbers, text_of, whole
from holdfast.personal import PLAIN, Tuning
from holdfast.round import cast
from holdfast.simulate import Federation, State, gather
from holdfast.slots import Private
from holdfast.task import Batch, Task
from holdfast.text import one
from holdfast.wanted import wanted_data, wanted_method, wanted_model, wanted_split, with_server_lr, without_data

EPOCHS = 5
SMALL = 256 * 2**20  # bytes of samples that are normalised once instead of batch by batch
KINDS = {"data": "data set", "split": "split", "model": "model"}


@dataclass(frozen=True)
class Run:
    """What to do. Every field is an option of `holdfast run`; texts may be the objects they stand for."""

    method: str | Method = "fedavg"
    data: str | Dataset = "digits"
    split: str | Split = "dirichlet(alpha=0.1, clients=100)"
    model: str | nn.Module = "cnn"
    augment: str = "none"
    normalize: str = "data"
    data_dir: str = ""
    rounds: int = 50
    cohort: int | str = 10
    epochs: int | None = None  # 5, unless steps are given
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
    drift: str = "both"
    proxy: float = 0.0
    finetune: int = 0
    engine: str = "auto"
    lanes: int = 0
    compile: bool = False
    threads: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    ray_address: str = ""
    workers: int = 0
    workers_per_gpu: int = 1

    def texts(self) -> dict[str, Any]:
        """The fields as they are written down."""
        return {f.name: self.text(f.name) for f in fields(self)}

    def text(self, key: str) -> Any:
        """One field in its canonical form, the same for all ways to write it."""
        value = getattr(self, key)
        if key == "method":  # with every option, so that a later default cannot change what it means
            return wanted_method(self).text(full=True)
        if key == "epochs":
            return self.epochs if self.epochs is not None or self.steps is not None else EPOCHS
        if key == "cohort":
            chance = cohort_of(value)
            return chance if isinstance(chance, int) else f"bernoulli({chance})"
        if key == "drift":
            return drift_of(value).text
        if key == "augment":
            return augmentation(value).text
        if key not in KINDS:
            return value
        if isinstance(value, str):
            kept = value.endswith(".json") or value.startswith(GIVEN)
            return value if kept else expression(*one(value, KINDS[key])[:2])
        return value.text if isinstance(value, Split) else f"{GIVEN} {type(value).__name__}"


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
    sums: str = ""  # 'strict', 'free' or 'unknown', see execute/sums.py; older files do not say

    def lost(self) -> list[str]:
        """What of it this process cannot give."""
        kept = (f"torch {self.torch}", f"{self.sums} sums") if self.sums else (f"torch {self.torch}",)
        here = f"torch {torch.__version__}", f"{sums.in_force()} sums"
        pairs = zip(kept, here, strict=False)
        return [f"planned with {old}, going on with {now}: bits may differ" for old, now in pairs if old != now]


@dataclass(frozen=True, eq=False)
class Ready:
    run: Run
    plan: Plan
    federation: Federation
    split: Split
    facts: dict[str, Any]

    @cached_property
    def described(self) -> Described:
        """The split in numbers, worked out when a run begins."""
        return described(self.split, self.federation.data)


def ready(run: Run, plan: Plan | None = None, costing: bool = False) -> Ready:
    """Checks everything and builds what the rounds need; all problems at once, and nothing is written.

    Only to tell the costs of a method (`costing`), what no cost depends on may be missing.
    """
    problems = numbers(run)
    wanted = wanted_method if problems else with_server_lr
    method = attempt(problems, lambda: wanted(run), "method")
    data = attempt(problems, lambda: wanted_data(run), "data")
    split = attempt(problems, lambda: wanted_split(run, data), "split") if data is not None else None
    module = attempt(problems, lambda: wanted_model(run, data), "model") if data is not None else None
    if data is None:
        problems += without_data(run)
    if split is not None:
        problems += fits(run, split) + ([] if plan else crowded(run, split))
    if problems or method is None or data is None or split is None or module is None:
        raise Refused(*dict.fromkeys(problems))  # options are looked at alone and again where they are used
    if data.source and (wrong := unsourced(run, method)):
        raise Refused(
            f"{data.name} makes samples when their client comes, and {wrong}; leave that out, or take other data"
        )
    made = build(run, plan, method, data, split, module)
    if made.federation.sheet.proxy and made.federation.proxy is None and not costing:
        raise Refused(
            f"{method} learns on labelled samples at the server, and there are none; give them by --proxy 0.02"
        )
    return made


def alone(key: str, value: Any) -> list[str]:
    """What is wrong with the value of one option, whatever the others are."""
    run = Run(**{key: value})
    problems = [text for text in numbers(run) if getattr(text, "option", "") == key]
    if key == "method":
        attempt(problems, lambda: wanted_method(run), key)
    if key == "data":
        attempt(problems, lambda: one(text_of(run.data, "data set"), "data set"), key)
    return problems + [text for text in without_data(run) if getattr(text, "option", "") == key]


def fits(run: Run, split: Split) -> list[str]:
    """What is wrong between the cohort and the population."""
    many, clients = attempt([], lambda: cohort_of(run.cohort)), len(split.clients)
    if isinstance(many, int) and many > clients:
        said = f"cohort={many} is more than the {clients} clients of {split.text}; take at most {clients}"
        return [Problem(said, "cohort")]
    largest = int(split.sizes.max())
    grows = run.drift.strip().startswith("client") if isinstance(run.drift, str) else False  # parts of any size
    if run.drop_last and whole(run.batch, 1) and largest < run.batch and not grows:
        said = f"batch={run.batch} with drop-last: nobody would train, for the largest client has {largest} samples"
        return [Problem(said, "batch")]
    return []


def crowded(run: Run, split: Split) -> list[str]:
    """Lanes that no client could ever fill; a plan that has them already stands."""
    many = attempt([], lambda: cohort_of(run.cohort))
    most = min(many, len(split.clients)) if isinstance(many, int) else len(split.clients)
    if not whole(run.lanes, 0) or many is None or run.lanes <= most:
        return []
    said = f"lanes={run.lanes} is more than the {most} clients that a round can have; take at most {most}, or 0"
    return [Problem(said, "lanes")]


def unsourced(run: Run, method: Method) -> str:
    """What visits clients outside of rounds, or mixes their samples."""
    visits = {
        "finetune visits every client": bool(run.finetune),
        "drift mixes the samples of a round": drift_of(run.drift).redraws,
        "private layers are evaluated at every client": bool(method.slot(Private)),
    }
    return " and ".join(what for what, asked in visits.items() if asked)


def build(run: Run, plan: Plan | None, method: Method, data: Dataset, split: Split, module: nn.Module) -> Ready:
    whole_task = Task.of(module, KINDS_OF[data.kind].loss, dtype=DTYPES[run.dtype]).on(run.device)
    task, augment = method.fit(whole_task), augmentation(run.augment)
    augment.check(data.shape, data.x.dtype)
    data = data.to(run.device)
    tried = fitting(whole_task, data, run.text("model"))
    costs = sheet(method, whole_task, tried, len(split.clients))  # which fits it to the method itself
    work = Work(run.batch, run.epochs or EPOCHS, run.steps, run.drop_last)
    fed = Federation(
        method, task, data, split.clients, split.sizes, work, cohort_of(run.cohort), run.lr, run.lr_decay, run.seed,
        costs, auto.Loop(method, task), tensors(method, run.device), run.on_nan, run.eval_every,
        drift=drift_of(run.drift), whole=whole_task, augment=augment.on(run.device), tests=split.tests,
        tests_from=split.tests_from,
    )  # fmt: skip
    if data.source is None and not data.codes and not augment and data.x.numel() * task.start.element_size() <= SMALL:
        fed = replace(fed, rows=data.prepare(data.x, task.start.dtype))
    if run.proxy:
        fed = with_proxy(run, fed)
    plan = plan or planned(run, fed, module)
    chosen = auto.Choice(plan.engine, plan.lanes, plan.why)
    cluster = Cluster(
        run.ray_address or os.environ.get("RAY_ADDRESS", ""),
        run.workers,
        run.workers_per_gpu,
        plan.threads,
        plan.device,
    )
    fed = replace(fed, execute=auto.make(chosen, method, task, plan.compile, cluster))
    if run.finetune:
        free = whole_task.keeping(task.layout.private)
        fed = replace(fed, tuning=Tuning(run.finetune, free, auto.make(chosen, PLAIN, free, plan.compile, cluster)))
    facts = {
        "parameters": task.layout.size,
        "clients": len(split.clients),
        "split_sha256": split.hash,
        "data_sha256": digest(data.x, data.y, data.test_x, data.test_y),
        "start_sha256": digest(task.start),
        **({"batchnorm": name} if (name := policy(module)) else {}),
    }
    return Ready(run, plan, fed, split, facts)


def with_proxy(run: Run, fed: Federation) -> Federation:
    """With a share of the test data at the server instead."""
    data, held = parted(fed.data, run.proxy, generator(run.seed, "proxy"))
    x = data.prepare(held.test_x, fed.task.start.dtype)
    return replace(fed, data=data, proxy=Batch(x, held.test_y, torch.ones_like(held.test_y, dtype=torch.bool)))


def planned(run: Run, fed: Federation, module: nn.Module) -> Plan:
    """The engine that was asked for or that the table names; where a model cannot be mapped, the loop, and why."""
    many = fed.cohort if isinstance(fed.cohort, int) else math.ceil(fed.cohort * len(fed.clients))
    name = one(run.model, "model").name if isinstance(run.model, str) else ""
    like = auto.like(name, module)
    choice = auto.choose(like, math.prod(fed.data.shape), many, run.device, taken=like != name)
    if run.engine != "auto":
        choice = asked(run, many)
    if choice.engine != "loop":
        reason = unmappable(fed)
        if reason and run.engine != "auto":
            raise Refused(f"engine={run.engine}: this run cannot be mapped over clients ({reason}); take --engine loop")
        if reason:
            choice = auto.Choice("loop", 1, f"loop: this run cannot be mapped over clients ({reason})")
    lanes = run.lanes or choice.lanes if choice.engine != "loop" else 1
    threads = run.threads or (1 if choice.engine == "ray" else torch.get_num_threads())
    compiled = run.compile and choice.engine != "loop"
    where = run.dtype, run.device, torch.__version__
    return Plan(choice.engine, lanes, compiled, threads, *where, choice.why, sums.in_force())


def asked(run: Run, many: int) -> auto.Choice:
    """The engine that was asked for. Ray's lanes depend on no number of workers, so that no bit does."""
    if run.engine != "ray":
        return auto.Choice(run.engine, 1 if run.engine == "loop" else min(many, auto.LANES), f"{run.engine}: asked for")
    lanes = run.lanes or min(-(-many // auto.SHARDS), auto.LANES)
    return auto.Choice("ray", lanes, f"ray: asked for; rounds of {-(-many // lanes)} shards of {lanes} clients")


def unmappable(fed: Federation) -> str:
    state = State.of(fed)
    ids = sample(fed.seed, 0, len(fed.clients), fed.cohort)
    fed = fed.visiting(ids)
    down = cast(fed.method.bound(fed.options), state.server, torch.tensor(fed.lr, dtype=state.server.w.dtype))
    return auto.trial(fed.method, fed.task, fed.options, down, gather(fed, state, 0, ids), fed.feed)
