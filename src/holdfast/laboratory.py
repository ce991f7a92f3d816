"""A federation small enough for laws: two networks of 451 parameters, five clients, three rounds.

Batches are partial, one client has a single sample and one has none, sizes and step counts differ, and each round
takes three clients of five. All that a law compares comes back from `Lab.run` as one `State` a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap

from holdfast.data import plan
from holdfast.errors import Refused
from holdfast.execute import Cohort, Executor, Memory, Options, tensors
from holdfast.execute.batched import Batched
from holdfast.execute.loop import Loop
from holdfast.method import Method, Part, within
from holdfast.models.toy import CLASSES, network
from holdfast.round import Down, Server, Up, absorb, cast, open_memory, open_server
from holdfast.slots import Ascend, Cast, Close, Codec, Descend, Update
from holdfast.task import Batch, Task, cross_entropy
from holdfast.vector import Record, mapped, repeated

Engine = Callable[[Method, Task], Executor]

SIZES = (7, 5, 1, 0, 4)
CLIENTS, BATCH, COHORT, ROUNDS, RATE = len(SIZES), 3, 3, 3, 0.05
SEED = 53  # of the rounds: with it everybody is drawn, and all that have samples are drawn twice
EVERYBODY = range(CLIENTS)
NETWORKS = ("group", "batch")
ENDS = np.cumsum(SIZES)
OWNED = [np.arange(end - n, end) for n, end in zip(SIZES, ENDS, strict=True)]


class State(NamedTuple):
    """Everything there is after a round; `ups` is what the round's clients sent, decoded."""

    server: Server
    memory: Memory  # [N, ...], all clients
    ups: Up | tuple[()] = ()


def meant(method: Method, task: Task, ups: Up) -> Up:
    """With the updates that a codec's records stand for: codes of what is only rounding may differ."""
    for p in method.slot(Codec):
        ups = ups._replace(delta=vmap(partial(p.decode, layout=task.layout))(ups.delta))
    return ups


def batched(lanes: int) -> Engine:
    return partial(Batched, lanes=lanes)


def level(logits: Tensor, y: Tensor) -> Tensor:
    """A loss that is the same everywhere: its gradient is exactly zero."""
    return 0 * logits.sum(-1)


@cache
def problem(kind: str, dtype: torch.dtype, still: bool) -> Task:
    return Task.of(network(kind), level if still else cross_entropy, dtype=dtype)


@cache
def samples() -> tuple[Tensor, Tensor]:
    """Each client has mostly one class, so that updates conflict."""
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(sum(SIZES), 1, 6, 6, generator=draw, dtype=torch.float64)
    owner = torch.repeat_interleave(torch.arange(CLIENTS), torch.tensor(SIZES))
    other = torch.rand(len(x), generator=draw) < 0.2
    y = (owner + other) % CLASSES
    return x + (y - 1)[:, None, None, None], y


@dataclass(frozen=True)
class Lab:
    """One network in one precision. `steps` replaces one pass over the data; `still` makes every gradient zero."""

    network: str = "group"
    dtype: torch.dtype = torch.float64
    rate: float = RATE
    steps: int | None = None
    still: bool = False

    def task(self, method: Method) -> Task:
        return method.fit(problem(self.network, self.dtype, self.still))

    def first(self, method: Method) -> State:
        task = self.task(method)
        return State(open_server(method, task, CLIENTS), repeated(open_memory(method, task, CLIENTS), CLIENTS))

    def cohort(self, memory: Memory, t: int, ids: Sequence[int] | None = None) -> Cohort:
        """The clients of round t, or those given, with the batches that they would see in that round."""
        rows = torch.tensor(plan.sample(SEED, t, CLIENTS, COHORT).tolist() if ids is None else list(ids))
        work = plan.Work(BATCH, steps=self.steps)
        seen = [work.batches(OWNED[i], plan.generator(SEED, "batches", t, i)) for i in rows.tolist()]
        index, live = plan.table(seen, BATCH)
        y = samples()[1]
        classes = torch.stack([torch.bincount(y[OWNED[i]], minlength=CLASSES) for i in rows.tolist()])
        cards = {"n": torch.tensor(SIZES)[rows].to(self.dtype), "classes": classes.to(self.dtype)}
        return Cohort(rows, plan.keys(SEED, t, rows), index, live, cards, mapped(lambda m: m[rows], memory))

    def feed(self, index: Tensor, live: Tensor, *_: object) -> Batch:
        x, y = samples()
        return Batch(x[index].to(self.dtype), y[index], live)

    @property
    def proxy(self) -> Batch:
        """What the server holds of its own."""
        return self.feed(torch.arange(6), torch.ones(6, dtype=torch.bool))

    def down(self, method: Method, server: Server) -> Down:
        return cast(method, server, torch.tensor(self.rate, dtype=self.dtype))

    def round(
        self, method: Method, before: State, t: int, engine: Engine = Loop,
        ids: Sequence[int] | None = None, options: Options | None = None,
    ) -> State:  # fmt: skip
        task, options = self.task(method), tensors(method) if options is None else options
        bound = method.bound(options)
        down, cohort = self.down(bound, before.server), self.cohort(before.memory, t, ids)
        ups, kept = engine(method, task)(options, down, cohort, self.feed)
        memory = mapped(lambda m, new: m.index_copy(0, cohort.ids, new), before.memory, kept)
        population = torch.tensor(float(CLIENTS), dtype=self.dtype)
        server = absorb(
            bound, task, before.server, down, ups, cohort.ids, population, plan.root(SEED), proxy=self.proxy
        )
        return State(server, memory, meant(method, task, ups))

    def run(
        self, method: Method, engine: Engine = Loop, rounds: int = ROUNDS, along: Sequence[State] = (),
        ids: Sequence[int] | None = None, options: Options | None = None,
    ) -> list[State]:  # fmt: skip
        """The state after each round. `along` restarts every round from where another run stood."""
        states: list[State] = []
        for t in range(rounds):
            before = (along or states)[t - 1] if t else self.first(method)
            states.append(self.round(method, before, t, engine, ids, options))
        return states


@lru_cache(maxsize=64)
def reference(lab: Lab, method: Method) -> list[State]:
    """The loop's run, shared by laws."""
    return lab.run(method)


def named(tree: Any, name: str = "") -> dict[str, Tensor]:
    """The tensors of a state by dotted name, so that a broken law can say where."""
    if isinstance(tree, Tensor):
        return {name: tree}
    fields = getattr(tree, "_fields", range(len(tree)))
    branches = tree.items() if isinstance(tree, dict) else zip(fields, tree, strict=True)
    found: dict[str, Tensor] = {}
    for key, branch in branches:
        found |= named(branch, f"{name}.{key}" if name else str(key))
    return found


def cloned(tree: Any) -> Any:
    return mapped(torch.clone, tree)


def differences(a: Any, b: Any, bound: float) -> list[str]:
    """Where |a - b| > bound (1 + |a|), or where the names, shapes, types or non-finite entries differ."""
    first, second = named(a), named(b)
    if first.keys() != second.keys():
        return [f"entries differ: {sorted(first.keys() ^ second.keys())}"]
    return [f"{name}: {said}" for name in first if (said := difference(first[name], second[name], bound))]


def difference(a: Tensor, b: Tensor, bound: float) -> str:
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{list(a.shape)} {a.dtype} against {list(b.shape)} {b.dtype}"
    if torch.equal(a, b):
        return ""
    gap, scale = (a.double() - b.double()).abs(), 1 + a.double().abs()
    if bool((gap <= bound * scale).all()) and bound > 0:
        return ""
    return f"off by {float(gap.max()):.3g} where |a| is up to {float(a.double().abs().max()):.3g} (bound {bound:g})"


def same(a: Any, b: Any, bound: float, what: str) -> None:
    found = differences(a, b, bound)
    assert not found, f"{what}: " + "; ".join(found[:4]) + (f"; and {len(found) - 4} more" if found[4:] else "")


def unsound(tree: Any) -> list[str]:
    """Names of tensors that are not finite."""
    return [name for name, t in named(tree).items() if not bool(torch.isfinite(t).all())]


def lowered(state: State) -> State:
    """The same state in float32."""
    return mapped(lambda t: t.float() if t.is_floating_point() else t, State(state.server, state.memory))


def arrangements(whole: Cohort) -> Iterator[tuple[str, list[int], Cohort]]:
    """The clients alone, in other company, in another order, with more steps that nobody takes."""
    for rows in ([0], [2], [3], [4, 1], [1, 2, 3], [4, 3, 2, 1, 0]):
        yield f"clients {rows} against all", rows, mapped(lambda stack, rows=rows: stack[rows], whole)
    yield "two more steps", list(EVERYBODY), padded(whole, steps=2)


def padded(whole: Cohort, steps: int = 0, rows: int = 0) -> Cohort:
    index, live = (nn.functional.pad(t, (0, rows, 0, steps)) for t in (whole.index, whole.live))
    return whole._replace(index=index, live=live)


def watched(part: Part, first: State) -> Part:
    """The same part with hooks that check what they return; options stay numbers, so the class needs no entry."""
    memory = mapped(lambda stack: stack[0], first.memory.get(part.name, {}))
    tables = {"state": first.server.parts[part.name], "memory": memory, "up": dict.fromkeys(part.uplink)}
    tables["carry"] = dict.fromkeys(part.kept("carry"))
    # Of each hook: where its value comes in, and what comes after the value when it returns.
    hooks: list[tuple[type, int, tuple[str, ...]]] = [
        (Cast, 0, ("",)), (Ascend, -1, ("carry",)), (Descend, -1, ("carry",)), (Close, 0, ("up", "memory")),
        (Update, 0, ("state",)), (Codec, -1, ("memory",)),
    ]  # fmt: skip
    body: dict[str, Any] = {}
    for slot, place, kinds in hooks:
        if isinstance(part, slot):
            name = "encode" if slot is Codec else slot.__name__.lower()
            body[name] = watcher(getattr(type(part), name), part, place if slot in part.observes else -1, kinds, tables)
    for slot in part.observes - {slot for slot, _, _ in hooks}:
        name = slot.__name__.lower()
        body[name] = watcher(getattr(type(part), name), part, 0, (), tables)
    spy = object.__new__(type(part.name, (type(part),), body))
    vars(spy).update(vars(part))
    return spy


def watcher(hook: Any, part: Part, place: int, kinds: tuple[str, ...], tables: dict[str, Any]) -> Any:
    def watching(self: Part, *args: Any) -> Any:
        out = hook(self, *args)
        value, *records = out if kinds else (out,)
        said = f"'{part.name}'.{hook.__name__}"
        assert place < 0 or value is args[place], f"{said} is declared to observe and returns another value"
        assert len(records) == len(kinds), f"{said} returns {len(records)} tables; {len(kinds)} are wanted"
        for kind, record in zip(kinds, records, strict=True):
            if kind:
                wanted = tables[kind]
                assert record.keys() == wanted.keys(), f"{said}: {kind} {sorted(record)}; declared {sorted(wanted)}"
                wrong = [k for k, t in wanted.items() if t is not None and t.shape != record[k].shape]
                assert not wrong, f"{said}: {kind} {wrong} changed shape"
        return out

    return watching


def twice(function: Callable[..., Any], *args: Any) -> Any:
    trees = [a for a in args if isinstance(a, tuple | Tensor)]
    kept = cloned(tuple(trees))
    first, second = cloned(function(*args)), function(*args)
    same(kept, tuple(trees), 0, f"'{function.__name__}' changed its input")
    same(first, second, 0, f"'{function.__name__}' called twice")
    return second


def attributes(method: Method) -> set[tuple[str, str, int]]:
    owners = [(p.name, owner) for p in method.parts for owner in (p, type(p))]
    return {(name, key, id(value)) for name, owner in owners for key, value in vars(owner).items()}


def less(state: State, name: str) -> Any:
    def others(tables: dict[str, Record]) -> dict[str, Record]:
        return {key: table for key, table in tables.items() if key != name and table}

    return state.server._replace(parts=others(state.server.parts)), others(state.memory)


def without(method: Method, part: Part) -> Method | None:
    """The method less a part; None where the rest cannot stand alone."""
    try:
        return Method(tuple(p for p in method.parts if p is not part))
    except Refused:
        return None


def scaled(part: Part, key: str, value: Tensor, factor: float) -> Tensor:
    """Another value of an option; the same where it would leave its range."""
    other = float(value) * factor
    return torch.full_like(value, other) if within(other, part.ranges.get(key, "")) else value.clone()
