"""One client after another: the definition that every other executor must equal, and the place to debug."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from holdfast.execute import Cohort, Feed, Memory, Options
from holdfast.execute.blame import told
from holdfast.gradient import autograd
from holdfast.method import Method
from holdfast.round import Down, Own, Up, begin, finish, step
from holdfast.task import Task
from holdfast.vector import mapped


@dataclass(frozen=True)
class Loop:
    method: Method
    task: Task

    def __call__(self, options: Options, down: Down, cohort: Cohort, feed: Feed) -> tuple[Up, Memory]:
        method = self.method.bound(options)
        done = [self.visit(method, down, cohort, k, steps, feed) for k, steps in enumerate(cohort.steps)]
        return mapped(lambda *rows: torch.stack(rows), *done)

    def visit(self, method: Method, down: Down, cohort: Cohort, k: int, steps: int, feed: Feed) -> tuple[Up, Memory]:
        own = Own(*mapped(lambda stack: stack[k], (cohort.keys, cohort.cards, cohort.memory)))
        s = 0
        # A module that draws from torch's own generator gets the same numbers whoever is computed before it.
        with (
            told(lambda: f"client {int(cohort.ids[k])}, local step {s + 1} of {steps}, round {int(down.round) + 1}"),
            torch.random.fork_rng(devices=[]),
        ):
            torch.default_generator.manual_seed(int(own.key))
            carry = begin(method, self.task, down, own)
            sizes: list[int] = cohort.live[k].sum(-1).tolist()
            for s in range(steps):
                n = sizes[s]  # live rows come first
                batch = feed(cohort.index[k, s, :n], cohort.live[k, s, :n], own.key, s)
                carry = step(method, self.task, down, own, carry, batch, autograd)
            return finish(method, self.task, down, own, carry)
