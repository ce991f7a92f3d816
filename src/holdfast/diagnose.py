"""Which part of a method made a number that is not finite: the round is computed again, slowly, and watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from holdfast.execute import Cohort, Feed
from holdfast.gradient import Objective, autograd
from holdfast.method import Method, Part
from holdfast.round import Carry, Down, Own, begin, finish, step
from holdfast.slots import Codec, Frozen, Private
from holdfast.vector import leaves, mapped

Note = Callable[[str, Any], None]
UNSPIED = (Frozen, Private, Codec)  # they give names, or another form of what Close returned


def client(method: Method, task: Any, down: Down, cohort: Cohort, k: int, feed: Feed) -> str:
    """For the client in row k of a cohort: where its run first left the finite numbers; empty if it does not."""
    found: list[str] = []

    def note(who: str, value: Any) -> None:
        if not found and not sound(value):
            found.append(who)

    def watched(objective: Objective, w: torch.Tensor) -> Any:
        gradient, (loss, buffers) = autograd(objective, w)
        note("the loss", loss)
        note("the gradient of the loss", gradient)
        return gradient, (loss, buffers)

    spied = spying(method, note)
    own = Own(*mapped(lambda stack: stack[k], (cohort.keys, cohort.cards, cohort.memory)))
    note("what the client remembers", own.memory)
    carry, many = begin(spied, task, down, own), cohort.steps[k]
    for s in range(many):
        n = int(cohort.live[k, s].sum())
        length = float(carry.w.double().norm())
        batch = feed(cohort.index[k, s, :n], cohort.live[k, s, :n], own.key, s)
        carry = step(spied, task, down, own, carry, batch, watched)
        note("the step, which is too large for its numbers,", carry.w)
        if found:
            return f"{found[0]} is not finite in local step {s + 1} of {many}, where ||w|| was {length:.3g}"
    finish(spied, task, down, own, Carry(*carry))
    return f"{found[0]} is not finite after the last local step" if found else ""


def server(method: Method, absorbing: Callable[[Method], Any]) -> str:
    """The server's hook whose result first left the finite numbers; empty if none did."""
    found: list[str] = []

    def note(who: str, value: Any) -> None:
        if not found and not sound(value):
            found.append(who)

    absorbing(spying(method, note))
    return f"{found[0]} is not finite" if found else ""


def sound(value: Any) -> bool:
    return all(bool(torch.isfinite(t).all()) for t in leaves(value) if t.is_floating_point())


def spying(method: Method, note: Note) -> Method:
    """The same method, every hook of which reports what it returns."""
    spied = object.__new__(Method)
    object.__setattr__(spied, "parts", tuple(spy(p, note) for p in method.parts))
    return spied


def spy(part: Part, note: Note) -> Part:
    def telling(name: str, hook: Any) -> Any:
        def tells(self: Part, *args: Any) -> Any:
            if name == "loss":
                note("the model's output", args[-1].out.logits)
            out = hook(self, *args)
            note(f"what part '{part.name}' returns in '{name}'", out)
            return out

        return tells

    names = [slot.__name__.lower() for slot in part.slots() if slot not in UNSPIED]
    body = {name: telling(name, getattr(type(part), name)) for name in names}
    twin = object.__new__(type(part.name, (type(part),), body))
    vars(twin).update(vars(part))
    return twin
