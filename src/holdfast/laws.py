"""What holds for every part, whoever wrote it: `check("sam + mine(beta=0.2)")` on a federation of toy size.

A law takes a method and raises AssertionError, naming itself, the method and the numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from holdfast import laboratory
from holdfast.errors import Refused
from holdfast.execute import tensors
from holdfast.execute.batched import Batched
from holdfast.execute.loop import Loop
from holdfast.gradient import autograd
from holdfast.laboratory import EVERYBODY, NETWORKS, Lab, batched, cloned, named, reference, same, twice, unsound
from holdfast.method import REGISTRY, Method, Part
from holdfast.round import Down, Own, absorb, begin, cast, finish, step
from holdfast.slots import ORDERED, Ascend, Close, Correct, Descend, Loss, Perturb, Transform
from holdfast.text import made, parse
from holdfast.vector import mapped

Law = Callable[[Method], None]
# What a local step calls; the others cannot change its graph.
STEP = (Loss, Ascend, Perturb, Transform, Correct, Descend)
LAWS: dict[str, Law] = {}
APPLIES: dict[str, Callable[[Method], bool]] = {}


def law(applies: Callable[[Method], bool] = lambda method: True) -> Callable[[Law], Law]:
    """Registers a law under its name; whatever goes wrong under it becomes an AssertionError that names it."""

    def decorate(function: Law) -> Law:
        name = function.__name__

        @functools.wraps(function)
        def held(method: Method) -> None:
            try:
                function(method)
            except Exception as error:
                said = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
                raise AssertionError(f"law '{name}', method '{method}': {said}") from error

        LAWS[name], APPLIES[name] = held, applies
        return held

    return decorate


def check(method: Method | str) -> list[str]:
    """Runs every law that applies and returns their names; all that are broken are told at once."""
    method = parse(method) if isinstance(method, str) else method
    names = [name for name in LAWS if APPLIES[name](method)]
    broken: list[str] = []
    for name in names:
        try:
            LAWS[name](method)
        except AssertionError as error:
            broken.append(str(error))
    if broken:
        raise AssertionError("\n".join(broken))
    return names


def at_neutral(part: Part) -> bool:
    return bool(part.neutral) and all(part.options()[key] == value for key, value in part.neutral.items())


@law()
def purity(method: Method) -> None:
    """Every function of a round gives the same twice, changes none of its inputs and leaves no trace in the part.

    Clients are computed in any order, in lanes or elsewhere: what a hook leaves behind would reach another client. It
    would also spoil the runs of the other laws, so this one is the first.
    """
    lab = Lab("batch")
    task, begun, marks = lab.task(method), reference(lab, method)[1], laboratory.attributes(method)
    fixed = cloned((task.start, task.buffers))
    rate = torch.tensor(lab.rate, dtype=lab.dtype)
    cohort = lab.cohort(begun.memory, 2, EVERYBODY)
    down = twice(cast, method, begun.server, rate)
    for k in (0, 2, 3):
        own = Own(*mapped(lambda stack, k=k: stack[k], (cohort.keys, cohort.cards, cohort.memory)))
        carry = twice(begin, method, task, down, own)
        for s in range(cohort.steps[k]):
            live = cohort.live[k, s]
            batch = lab.feed(cohort.index[k, s][live], live[live])
            carry = twice(step, method, task, down, own, carry, batch, autograd)
        twice(finish, method, task, down, own, carry)
    ups, _ = Loop(method, task)({}, down, cohort, lab.feed)
    numbers = torch.tensor(float(laboratory.CLIENTS), dtype=lab.dtype), torch.tensor(7)
    numbers = *numbers, lambda r: r, lab.proxy
    twice(absorb, method, task, begun.server, down, ups, cohort.ids, *numbers)
    same(fixed, (task.start, task.buffers), 0, "the task was changed in place")
    written = sorted(key[:2] for key in laboratory.attributes(method) ^ marks)
    assert not written, f"attributes were written: {written}"


@law()
def executors(method: Method) -> None:
    """`batched` is `loop` in float64, in every state of every round; and options as numbers are options as tensors.

    The loop is the definition; that any part may be run fast rests on this law.
    """
    for network in NETWORKS:
        lab = Lab(network)
        loop = reference(lab, method)
        along = loop if any(p.jumps for p in method.parts) else ()
        others = {f"batched({k})": lab.run(method, batched(k), along=along) for k in (2, 5)}
        others["loop with numbers"] = lab.run(method, along=along, options={})
        for said, states in others.items():
            for t, (a, b) in enumerate(zip(loop, states, strict=True)):
                same(a, b, 1e-12, f"loop and {said}, network '{network}', after round {t + 1}")


@law()
def float32(method: Method) -> None:
    """One local step and its round in float32 are those of float64 to 1e-3, and no tensor changes its type.

    A larger gap, or an option's float64 leaking into the states, means a formula that float32 cannot hold.
    """
    for network in NETWORKS:
        exact = Lab(network, steps=1)
        rough = replace(exact, dtype=torch.float32)
        begun = reference(Lab(network), method)[1]
        wanted = exact.round(method, begun, 2, ids=EVERYBODY)
        for engine in (Loop, batched(3)):
            found = rough.round(method, laboratory.lowered(begun), 2, engine, ids=EVERYBODY)
            assert not (wide := [k for k, t in named(found).items() if t.dtype == torch.float64]), f"float64 in {wide}"
            a, b = named((wanted.memory, wanted.ups)), named((found.memory, found.ups))
            for name, value in a.items():
                gap, size = float((value - b[name]).double().norm()), float(value.double().norm())
                assert gap <= 1e-3 * size + 1e-6, f"{name} is off by {gap:.3g} of {size:.3g}, network '{network}'"


@law()
def company(method: Method) -> None:
    """With a fixed number of lanes a client gets the same bits alone, in company, in any order, however padded.

    A cohort that is drawn, split over machines or resumed otherwise would be another experiment. The width of a batch
    and the number of threads belong to the plan: torch may add up another shape in another order, and its FFT of a
    stack of short vectors differs by a bit between one thread and two.
    """
    for network in NETWORKS:
        lab = Lab(network, torch.float32)
        begun = laboratory.lowered(reference(Lab(network), method)[1])
        send, whole = Batched(method, lab.task(method), 4), lab.cohort(begun.memory, 2, EVERYBODY)
        options, down = tensors(method), lab.down(method.bound(tensors(method)), begun.server)
        wanted = send(options, down, whole, lab.feed)
        for said, rows, cohort in laboratory.arrangements(whole):
            found = send(options, down, cohort, lab.feed)
            same(mapped(lambda t, rows=rows: t[rows], wanted), found, 0, f"{said}, network '{network}'")
        # Another width is rounded otherwise, which parts may magnify; in float64 what is left tells of the padding.
        lab, begun = Lab(network), reference(Lab(network), method)[1]
        send, whole = Batched(method, lab.task(method), 4), lab.cohort(begun.memory, 2, EVERYBODY)
        down, wide = lab.down(method.bound(options), begun.server), laboratory.padded(whole, rows=1)
        narrow, wider = (send(options, down, cohort, lab.feed) for cohort in (whole, wide))
        same(narrow, wider, 1e-12, f"batches wider by a padded row, network '{network}'")


@law()
def text(method: Method) -> None:
    """Text and method name each other, and order in text matters only between parts that share an ordered slot.

    Results are filed under the text: two texts of one method would be two results.
    """
    full = method.text(full=True)
    for said in (str(method), full, repr(method), f"  {full}\n"):
        back = parse(said)
        assert back == method and hash(back) == hash(method), f"{said!r} reads as {back!r}"
        assert str(back) == str(method) and back.text(full=True) == full, f"{said!r} is written {back.text(full=True)}"
    parts = method.parts
    for i in range(len(parts) - 1):
        if not shared(parts[i], parts[i + 1]):
            turned = (*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :])
            assert Method(turned) == method, f"order of {parts[i].name} and {parts[i + 1].name}: {Method(turned)}"
    for cls in REGISTRY.values():
        if any(shared(cls, p) for p in parts):
            continue
        try:
            one, other = method + cls(), cls() + method
        except Refused:
            continue
        assert one == other and hash(one) == hash(other), f"{one} and {other} share no ordered slot and differ"


def shared(p: Part | type[Part], q: Part | type[Part]) -> set[type]:
    """The ordered slots in which both act."""
    return {slot for slot in ORDERED if slot in {*p.slots()} & {*q.slots()} and slot not in p.observes | q.observes}


@law(lambda method: any(p.neutral for p in method.parts))
def neutral(method: Method) -> None:
    """At its neutral options a part is not there: every bit of w, buffers and the other parts' states is as without it.

    Zeros are added and ones multiplied, which is exact: so bitwise, in the loop, in float64. Where the part held others
    in another order, their terms are added in that order, and 1e-12 is asked.
    """
    for p in method.parts:
        rest = laboratory.without(method, p)
        if not p.neutral or rest is None:
            continue
        idle = Method(tuple(made(p.name, {**p.options(), **p.neutral}) if q is p else q for q in method.parts))
        bound = 0 if rest.parts == tuple(q for q in idle.parts if q.name != p.name) else 1e-12
        for network in NETWORKS:
            pairs = zip(reference(Lab(network), rest), reference(Lab(network), idle), strict=True)
            for t, (bare, with_) in enumerate(pairs):
                what = f"without '{p.name}' and with {p.neutral}, network '{network}', after round {t + 1}"
                same(laboratory.less(bare, p.name), laboratory.less(with_, p.name), bound, what)


@law(lambda method: bool(method.parts))
def active(method: Method) -> None:
    """Without the part the server's model is another: a part that is silently a no-op is the commonest bug there is."""
    for p in method.parts:
        rest = laboratory.without(method, p)
        if rest is None or at_neutral(p):
            continue
        a, b = (reference(Lab(), m)[-1].server.w for m in (method, rest))
        if a.shape != b.shape:
            continue  # it takes tensors out of the vector
        gap = float(Lab().task(method).layout.shared(a - b).abs().max())
        assert gap > 1e-9, f"'{p}' moves the model by {gap:.3g} in three rounds; check it, or give it stronger options"


@law(lambda method: any(p.fills(slot) for p in method.parts for slot in STEP) or not method.parts)
def trace(method: Method) -> None:
    """The step of all lanes is one graph; another step and other values of float options need no other.

    A graph break or a compilation per value is where the speed on a GPU is lost.
    """
    lab, graphs = Lab("batch", torch.float32), list[Any]()
    begun = lab.first(method)
    cohort, options = lab.cohort(begun.memory, 0, (0, 1, 4)), tensors(method)
    begin_all, _, step_all, _ = Batched(method, lab.task(method), 3).functions
    down: Down = lab.down(method.bound(options), begun.server)
    own = Own(cohort.keys, cohort.cards, cohort.memory)
    carry = cloned(begin_all(options, down, own))  # whether its memory is laid out alike is the executor's affair

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(step_all, backend=backend, fullgraph=True, dynamic=False)
    for s, factor in enumerate((1.0, 0.5, 0.8)):
        batch = lab.feed(cohort.index[:, s], cohort.live[:, s])
        now = {p.name: {key: laboratory.scaled(p, key, value, factor) for key, value in options[p.name].items()}
               for p in method.parts}  # fmt: skip
        wanted = step_all(now, down, own, carry, batch)
        carry = compiled(now, down, own, carry, batch)
        same(wanted, carry, 1e-5, f"eager and compiled, step {s + 1}")
        assert len(graphs) == 1, f"{len(graphs)} graphs after step {s + 1} with options times {factor}"


@law()
def declared(method: Method) -> None:
    """Hooks return exactly the tables that the part declares, in the shapes they began with, and `observes` is true.

    The data sheet, checkpoints and the bill of what travels are read off these declarations.
    """
    lab = Lab()
    first = lab.first(method)
    for p in method.parts:
        assert set(p.uplink.values()) <= {"mean", "weighted", "sum"}, f"'{p.name}' has uplink {dict(p.uplink)}"
        assert not p.kept("memory") or isinstance(p, Close), f"'{p.name}' has memory and no close to write it"
        slots = {slot.__name__ for slot in p.observes - {*p.slots()}}
        assert not slots, f"'{p.name}' observes {slots}, which it does not fill"
    spied = object.__new__(Method)
    object.__setattr__(spied, "parts", tuple(laboratory.watched(p, first) for p in method.parts))
    lab.run(spied, options={})


@law()
def edges(method: Method) -> None:
    """Nothing breaks where little happens: nobody has samples, one client alone, no gradient."""
    for engine in (Loop, batched(2)):
        lab = Lab("batch")
        begun = reference(lab, method)[1]
        after = lab.round(method, begun, 2, engine, ids=(laboratory.SIZES.index(0),))
        counted = begun.server._replace(round=begun.server.round + 1)
        same((counted, begun.memory), (after.server, after.memory), 0, "a round of nobody")
        cases = {
            "one client": (lab, (0,)),
            "no gradient": (Lab("batch", still=True), None),
        }
        for said, (case, ids) in cases.items():
            states = case.run(method, engine, ids=ids)
            assert not (names := unsound(states)), f"{said}: not finite: {names[:4]}"
            moved = not torch.equal(states[-1].server.w, case.task(method).start)
            assert moved or not ids, f"{said}: nothing moved"
