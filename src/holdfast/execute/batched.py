"""A fixed number of clients at once: the carry stacked on dim 0 and stepped by one vmapped function.

Clients that have fewer steps or rows are padded and masked; the last chunk is padded with clients that do not exist.
With a fixed number of lanes a client gets the same bits in any company, order and lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.func import vmap

from holdfast.errors import Failed, Refused
from holdfast.execute import Cohort, Feed, Memory, Options
from holdfast.execute.blame import told
from holdfast.execute.loop import Loop
from holdfast.gradient import functional
from holdfast.method import Method
from holdfast.round import Carry, Down, Own, Up, begin, finish, step, where
from holdfast.task import Batch, Task
from holdfast.vector import mapped


@dataclass(frozen=True)
class Batched:
    method: Method
    task: Task
    lanes: int
    compiled: bool = False

    def __call__(self, options: Options, down: Down, cohort: Cohort, feed: Feed) -> tuple[Up, Memory]:
        with told(lambda: f"round {int(down.round) + 1}, which the loop can compute: take --engine loop"):
            try:
                return self.together(options, down, cohort, feed)
            except (Refused, Failed):
                raise
            except Exception:  # of many clients: the loop meets it again, and names the one
                Loop(self.method, self.task)(options, down, cohort, feed)
                raise

    def together(self, options: Options, down: Down, cohort: Cohort, feed: Feed) -> tuple[Up, Memory]:
        steps = cohort.steps
        # Long clients share a chunk with long ones, so that few lanes wait.
        order = sorted(range(len(steps)), key=lambda k: -steps[k])
        chunks = [order[i : i + self.lanes] for i in range(0, len(order), self.lanes)]
        done = [self.chunk(options, down, cohort, rows, steps[rows[0]], feed) for rows in chunks]
        back = torch.tensor(order).argsort()
        return mapped(lambda *stacks: torch.cat(stacks)[back.to(stacks[0].device)], *done)

    def chunk(
        self, options: Options, down: Down, cohort: Cohort, rows: list[int], steps: int, feed: Feed
    ) -> tuple[Up, Memory]:
        lanes = torch.tensor(rows + rows[:1] * (self.lanes - len(rows)))
        index, live = cohort.index[lanes], cohort.live[lanes].clone()
        live[len(rows) :] = False
        own = Own(*mapped(lambda stack: stack[lanes.to(stack.device)], (cohort.keys, cohort.cards, cohort.memory)))
        begin, step, masked, finish = self.functions
        full = live.any(-1).all(0).tolist()
        carry = mapped(torch.clone, begin(options, down, own))  # one memory layout for all rounds, so one compilation
        for s in range(steps):
            batch = feed(index[:, s].contiguous(), live[:, s].contiguous(), own.key, s)
            carry = (step if full[s] else masked)(options, down, own, carry, batch)
        return mapped(lambda stack: stack[: len(rows)], finish(options, down, own, carry))

    @cached_property
    def functions(self) -> tuple[Any, Any, Any, Any]:
        """`begin`, `step`, the step that lanes without a batch sit out, and `finish`, over lanes.

        Options are inputs, so their values need no new compilation. Compiled, there is only the masked step: a second
        graph would cost more than the mask.
        """
        method, task = self.method, self.task

        def lane_begin(options: Options, down: Down, own: Own) -> Carry:
            return begin(method.bound(options), task, down, own)

        def lane_step(options: Options, down: Down, own: Own, carry: Carry, batch: Batch) -> Carry:
            return step(method.bound(options), task, down, own, carry, batch, functional)

        def lane_masked(options: Options, down: Down, own: Own, carry: Carry, batch: Batch) -> Carry:
            return where(batch.live.any(), lane_step(options, down, own, carry, batch), carry)

        def lane_finish(options: Options, down: Down, own: Own, carry: Carry) -> tuple[Up, Memory]:
            return finish(method.bound(options), task, down, own, carry)

        first, last = vmap(lane_begin, (None, None, 0)), vmap(lane_finish, (None, None, 0, 0))
        plain, masked = (vmap(lane, (None, None, 0, 0, 0)) for lane in (lane_step, lane_masked))
        if self.compiled:
            plain = masked = torch.compile(masked, dynamic=False, fullgraph=True)
        return first, plain, masked, last
