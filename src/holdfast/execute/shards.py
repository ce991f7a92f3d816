"""The batched executor on many processes and machines: a cohort in shards of as many clients as there are lanes.

Shards, not workers, are the unit. They are cut by the plan alone and each is computed with the plan's lanes, so a
client gets the bits that `batched` gives it, whoever computes it; what comes back stands in the order of ids, so the
server adds as ever. What a client remembers travels with it, so no worker has anything that could be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from holdfast.execute import Cohort, Feed, Memory, Options
from holdfast.execute.batched import Batched
from holdfast.execute.cluster import Cluster, package
from holdfast.execute.workers import Pool, pool_of
from holdfast.method import Method
from holdfast.round import Down, Up
from holdfast.task import Task
from holdfast.vector import mapped

SHARDS = 8  # of a round, where nothing else is asked: enough for a few workers to be busy alike


@dataclass(eq=False)
class Ray:
    method: Method
    task: Task
    lanes: int
    compiled: bool = False
    cluster: Cluster = Cluster()  # noqa: RUF009 - frozen
    pool: Pool | None = None
    sent: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])  # what Ray holds for all

    def __call__(self, options: Options, down: Down, cohort: Cohort, feed: Feed) -> tuple[Up, Memory]:
        ray = package()
        pool = self.started(feed)
        refs = [self.sent["batched"][1], self.sent["feed"][1], ray.put((options, down))]
        order, shards = cut(cohort, self.lanes)
        done = pool.results(refs, shards, int(down.round) + 1)
        back = torch.tensor(order).argsort()
        return mapped(lambda *stacks: torch.cat(stacks)[back.to(stacks[0].device)], *done)

    def started(self, feed: Feed) -> Pool:
        """Workers that hold, or will at their first shard, method, task and samples, which are put once."""
        ray = package()
        pool = pool_of(self.cluster)
        if pool is not self.pool:
            self.pool, self.sent = pool, {}
        wanted = {"batched": Batched(self.method, self.task, self.lanes, self.compiled), "feed": feed}
        new = [key for key in wanted if key not in self.sent or (key == "feed" and self.sent[key][0] != feed)]
        self.sent |= {key: (wanted[key], ray.put(wanted[key])) for key in new}
        return pool

    def start(self, feed: Feed) -> None:
        """Refuses what no worker could compute, before anything is written."""
        pool = self.started(feed)
        pool.check([ref for _, ref in self.sent.values()])

    def happened(self) -> list[str]:
        """What a person should know of the workers since it was last asked."""
        if self.pool is None:
            return []
        said, self.pool.news = self.pool.news, []
        return said


def cut(cohort: Cohort, lanes: int) -> tuple[list[int], list[Cohort]]:
    """The rows of a cohort, longest client first, and the shards that they make."""
    steps = cohort.steps
    order = sorted(range(len(steps)), key=lambda k: -steps[k])
    rows = [order[i : i + lanes] for i in range(0, len(order), lanes)]
    return order, [mapped(lambda stack, rows=rows: stack[torch.tensor(rows).to(stack.device)], cohort) for rows in rows]
