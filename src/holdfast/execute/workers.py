"""Processes that Ray runs, here or on other machines, each computing shards of cohorts by the batched executor.

Nothing here decides a result: a shard gives the same bits whoever computes it, and whoever is lost is replaced.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import holdfast
from holdfast.errors import Failed, Refused
from holdfast.execute import Cohort, Memory
from holdfast.execute.batched import Batched
from holdfast.execute.cluster import Cluster, connect, package, packed, reason, unpacked
from holdfast.round import Up
from holdfast.vector import mapped

TRIES = 3  # how often a shard may lose its worker, and a first worker its start
PATIENCE = 120.0  # seconds in which a first worker must have started
HELD = 4  # objects that a worker keeps: a method with its task, a feed, what was sent down, and one more


class Worker:
    """What runs in a process of its own."""

    def __init__(self, threads: int):
        ray = package()
        torch.set_num_threads(threads)
        ray.util.register_serializer(Tensor, serializer=packed, deserializer=unpacked)
        self.held: dict[Any, Any] = {}

    def about(self) -> dict[str, Any]:
        """What two workers must agree in, and who this one is."""
        ray = package()
        same = {"holdfast": holdfast.__version__, "torch": torch.__version__}
        return {
            **same, "kernels": torch.backends.cpu.get_cpu_capability(), "pid": os.getpid(),
            "host": ray.util.get_node_ip_address(),
        }  # fmt: skip

    def hold(self, refs: list[Any]) -> list[Any]:
        """The objects themselves; those that were asked for last are kept."""
        found = [self.held[ref] if ref in self.held else fetched(ref) for ref in refs]
        others = [(ref, value) for ref, value in self.held.items() if ref not in refs]
        self.held = dict([*others, *zip(refs, found, strict=True)][-HELD:])
        return found

    def check(self, refs: list[Any]) -> None:
        self.hold(refs)

    def shard(self, refs: list[Any], cohort: Cohort) -> tuple[Up, Memory]:
        """Of (batched executor, feed, what was sent down): what these clients send and remember."""
        batched, feed, (options, down) = self.hold(refs)
        # Samples stay in the shared memory, which is only ever read; what code of a part gets in hand is its own.
        options, down, cohort = mapped(torch.clone, (options, down, cohort))
        return executed(batched, options, down, cohort, feed)


def fetched(ref: Any) -> Any:
    ray = package()
    try:
        return ray.get(ref)
    except Exception as error:
        raise Refused(
            f"a worker on {ray.util.get_node_ip_address()} cannot take the method, model or data: {reason(error)}; "
            "what they name must be importable there: start ray in the folder of the module, or with it in PYTHONPATH"
        ) from error


def executed(batched: Batched, *given: Any) -> tuple[Up, Memory]:
    try:
        return batched(*given)
    except (Refused, Failed):
        raise
    except Exception as error:
        said = (str(error).strip().splitlines() or [""])[0]
        raise Failed(f"a worker: {type(error).__name__}: {said}; --engine loop names the client and step") from error


@dataclass(eq=False)
class Pool:
    """The workers that there are; they may come and go at any moment."""

    cluster: Cluster
    starting: dict[Any, Any] = field(default_factory=dict[Any, Any])  # the call that waits for it -> worker
    idle: list[Any] = field(default_factory=list[Any])
    names: dict[Any, str] = field(default_factory=dict[Any, str])  # of those that have started
    news: list[str] = field(default_factory=list[str])
    failures: int = 0
    since: float = 0.0

    def grow(self) -> None:
        """Asks for as many workers as there is room for; Ray starts them when there is."""
        ray = package()
        if self.failures >= TRIES:  # until the next round
            return
        more = self.cluster.room(ray.cluster_resources()) - len(self.names) - len(self.starting)
        if more > 0 and not self.names and not self.starting:
            self.since = time.monotonic()
        for _ in range(more):
            worker = ray.remote(Worker).options(**self.cluster.wants).remote(self.cluster.threads)
            self.starting[worker.about.remote()] = worker

    def started(self, call: Any) -> None:
        """A worker that has answered, or could not start."""
        ray = package()
        worker = self.starting.pop(call)
        try:
            about = ray.get(call)
        except ray.exceptions.RayError as error:
            self.failures += 1
            if not self.names and self.failures >= TRIES:
                raise Refused(
                    f"no worker could start: {reason(error)}; each machine needs holdfast installed"
                ) from error
            return
        ours = {"holdfast": holdfast.__version__, "torch": torch.__version__}
        name = f"worker {about['pid']} on {about['host']}"
        if other := [f"{key} {about[key]}, here it is {value}" for key, value in ours.items() if about[key] != value]:
            raise Refused(f"{name} has {' and '.join(other)}: bits would differ; install the same on all machines")
        kernels = torch.backends.cpu.get_cpu_capability()
        if self.cluster.device == "cpu" and about["kernels"] != kernels:
            self.news.append(
                f"{name} computes with {about['kernels']} and this process with {kernels}: bits may depend on which "
                "machine computes whom"
            )
        self.names[worker] = name
        self.idle.append(worker)
        self.failures = 0

    def ready(self) -> None:
        """Waits for a first worker."""
        while not self.names:
            self.hear([])

    def hear(self, running: Sequence[Any]) -> list[Any]:
        """Calls of shards that have ended, after a moment's wait; workers that have started are taken in."""
        ray = package()
        if not running and not self.starting:
            self.grow()
        if not self.names and time.monotonic() - self.since > PATIENCE:
            wants = {key: number for key, number in self.cluster.wants.items() if number}
            raise Failed(f"no worker has started for {PATIENCE:.0f} s: each wants {wants} of {ray.cluster_resources()}")
        ended, _ = ray.wait([*running, *self.starting], timeout=0.5)
        if not ended:
            self.grow()
        for call in ended:
            if call in self.starting:
                self.started(call)
        return [call for call in ended if call not in self.starting and call in running]

    def sweep(self) -> None:
        """Forgets workers that have gone since the last round."""
        ray = package()
        for call, worker in [(worker.about.remote(), worker) for worker in self.idle]:
            try:
                ray.get(call)
            except ray.exceptions.RayError:
                self.idle = [other for other in self.idle if other != worker]
                self.news.append(f"{self.lose(worker)} had gone before the round")

    def lose(self, worker: Any) -> str:
        """Forgets a worker; what it was called."""
        ray = package()
        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(worker)
        return self.names.pop(worker, "a worker")

    def check(self, refs: list[Any]) -> None:
        ray = package()
        self.ready()
        try:
            ray.get(self.idle[0].check.remote(refs))
        except ray.exceptions.RayTaskError as error:
            raise cause(error) from error

    def results(self, refs: list[Any], shards: Sequence[Cohort], round: int) -> list[tuple[Up, Memory]]:
        """Of every shard. They stand longest first, and whoever is free takes the next."""
        ray = package()
        waiting, found, losses = deque(range(len(shards))), dict[int, Any](), Counter[int]()
        running: dict[Any, tuple[Any, int]] = {}
        self.failures = 0
        self.sweep()
        self.grow()
        try:
            while len(found) < len(shards):
                while waiting and self.idle:
                    worker, number = self.idle.pop(), waiting.popleft()
                    running[worker.shard.remote(refs, shards[number])] = worker, number
                for call in self.hear(list(running)):
                    worker, number = running.pop(call)
                    try:
                        found[number] = ray.get(call)
                        self.idle.append(worker)
                    except ray.exceptions.RayTaskError as error:
                        self.idle.append(worker)
                        raise cause(error) from error
                    except ray.exceptions.RayError as error:
                        losses[number] += 1
                        self.missed(self.lose(worker), shards[number], losses[number], round, error)
                        waiting.appendleft(number)
                        self.grow()
        finally:
            for worker, _ in running.values():  # only after an error: what they compute is of no use
                self.lose(worker)
        return [found[number] for number in range(len(shards))]

    def missed(self, name: str, shard: Cohort, times: int, round: int, error: Exception) -> None:
        clients = ", ".join(map(str, shard.ids.tolist()))
        if times >= TRIES:
            raise Failed(
                f"round {round}: {times} workers were lost, each while it computed clients {clients}: {reason(error)}; "
                "if memory ran out, take fewer --lanes"
            )
        self.news.append(f"{name} was lost in round {round}, its clients ({clients}) were computed again")

    @property
    def alive(self) -> bool:
        ray = package()
        return ray.is_initialized()

    def stop(self) -> None:
        if not self.alive:
            return
        for worker in [*self.names, *self.starting.values()]:
            self.lose(worker)
        self.starting, self.idle = {}, []


def cause(error: Any) -> Exception:
    """What went wrong in a worker, for a user."""
    inner = error.cause
    return inner if isinstance(inner, Refused | Failed) else Failed(f"a worker: {reason(inner)}")


POOLS: dict[Cluster, Pool] = {}  # one at most: Ray is one to a process, and so are those who compute


def pool_of(cluster: Cluster) -> Pool:
    """The workers of this process, kept from run to run."""
    pool = POOLS.get(cluster)
    if pool and pool.alive:
        return pool
    for other in POOLS.values():
        other.stop()
    POOLS.clear()
    connect(cluster)
    return POOLS.setdefault(cluster, Pool(cluster))
