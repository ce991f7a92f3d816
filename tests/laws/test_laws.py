"""Every law on every part of the registry and on every preset."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch

from holdfast.execute import tensors
from holdfast.execute.batched import Batched
from holdfast.laboratory import SIZES, Lab, reference, unsound
from holdfast.laws import APPLIES, LAWS
from holdfast.method import REGISTRY, Method
from holdfast.presets import PRESETS
from holdfast.text import parse

# Parts that need another part, or that do nothing at their defaults on a problem of toy size.
STAGES = {
    "specpert": "sam + specpert", "gcpert": "sam + gcpert", "l2pert": "sam + l2pert",
    "coordclip": "sam + coordclip(c=1.0)", "sized": "dyn + sized", "clip": "clip(max=0.1)", "server": "server(lr=0.5)",
    "law": "law(epochs=2)",
    "local_adam": "local_adam(eps=0.001)",  # a larger eps: Adam's own turns rounding into whole steps
}  # fmt: skip
# Options that change which lines of a part run.
FORMS = [
    "specgrad(r=0.2, kind='lap')", "specgrad(r=0.2, kind='gauss', on='all', match='model')", "specgrad(kind='fft2')",
    "specgrad(r=0.2, band='random', order='random')", "specgrad(r=0.2, band='fresh', order='2301', match='tensor')",
    "gc(per='live')", "gc(per='tensor', match='model')", "l2(form='unit')", "scaffold(option='I')",
    "awa(keep=True, init='log', distance='euc', gamma=0.9)", "gh(keep='length')", "gh(test_on='original')",
    "adam(rule='yogi')", "eve(predict='last')", "freeze(mode='discard')", "sol(form='distance', adaptive=True)",
    "specgrad(r=0.2, kind='block', short='shrink')", "specgrad(r=0.2, kind='lap', pad='zero', short='shrink')",
    "specgrad(r=0.2, order='random_client')", "dyn(mean_n=9) + scaffold(mean_n=9)", "scaffold(scale=0.1)",
    "univar(estimator='unbiased', self_pairs=True)", "lesam(mode='last_update')",
]  # fmt: skip


def methods() -> dict[Method, str]:
    """Each once: a preset that is a single part is that part."""
    texts = [STAGES.get(name, name) for name in sorted(REGISTRY)]
    texts += [text for text, parts in PRESETS.items() if parts not in STAGES] + FORMS
    return {parse(text): text for text in reversed(texts)}


def costly(method: Method) -> bool:
    """Sums whose parts all have their own cases, and other forms of a part: left to `make test-all`."""
    return methods()[method] in {*PRESETS, *FORMS}


CASES = [
    pytest.param(name, method, marks=[pytest.mark.slow] if costly(method) else [])
    for method in methods() for name in LAWS if APPLIES[name](method)
]  # fmt: skip


@pytest.mark.parametrize(("name", "method"), CASES, ids=lambda value: str(value).replace(" ", ""))
def test_law(name: str, method: Method) -> None:
    LAWS[name](method)


def test_every_part_moves_the_model_in_some_case() -> None:
    """`active` passes over parts at neutral options or without which the rest cannot stand; here nobody is passed."""
    shown = {
        p.name
        for m in methods()
        for p in m.parts
        if p.neutral.items() - p.options().items() or not p.neutral
        if len(m.parts) == 1 or f"{p.name}" in STAGES
    }
    assert shown == set(REGISTRY)


@pytest.mark.parametrize("method", methods(), ids=lambda value: str(value).replace(" ", ""))
def test_pickle(method: Method) -> None:
    back = pickle.loads(pickle.dumps(method))
    assert back == method and hash(back) == hash(method) and str(back) == str(method)


def test_laboratory_is_as_uneven_as_it_says() -> None:
    method, lab = parse("fedavg"), Lab()
    rounds = [lab.cohort({}, t) for t in range(3)]
    drawn = [i for cohort in rounds for i in cohort.ids.tolist()]
    assert len({tuple(cohort.ids.tolist()) for cohort in rounds}) == 3, "each round takes others"
    assert set(drawn) == set(range(5)), "everybody is drawn"
    assert all(drawn.count(i) > 1 for i, n in enumerate(SIZES) if n), "all that train are drawn again"
    assert any(len({*cohort.steps}) > 1 for cohort in rounds), "clients differ in steps"
    assert any(not live.all() for cohort in rounds for live in cohort.live), "batches are partial"
    sizes = {kind: lab.task(method).layout.size for kind, lab in (("group", lab), ("batch", Lab("batch")))}
    assert set(sizes.values()) == {451}, sizes
    assert not unsound(reference(lab, method))


def test_a_run_of_batched_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step gets its carry from `begin`, the others from `step`; both must be laid out alike in memory."""
    original, graphs = torch.compile, list[Any]()

    def counting(function: Any, **options: Any) -> Any:
        def backend(graph: Any, _: Any) -> Any:
            graphs.append(graph)
            return graph.forward

        return original(function, backend=backend, **options)

    monkeypatch.setattr(torch, "compile", counting)
    torch.compiler.reset()
    method, lab = parse("scaffold"), Lab(dtype=torch.float32)
    state, options = lab.first(method), tensors(method)
    executor = Batched(method, lab.task(method), 3, compiled=True)
    for t in range(3):
        down = lab.down(method.bound(options), state.server)
        executor(options, down, lab.cohort(state.memory, t), lab.feed)
    assert len(graphs) == 1, f"{len(graphs)} graphs for three rounds of one method"
