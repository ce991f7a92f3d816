"""What is said of a run before its first round."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.batchnorm import POLICIES
from holdfast.data.told import lines
from holdfast.execute import sums
from holdfast.experiment import Ready


def remarks(made: Ready) -> Iterator[str]:
    """What a reader of the figures has to know, and what looks like a mistake and may be meant."""
    fed = made.federation
    if made.plan.device == "cpu" and (said := sums.advice()):
        yield said
    yield from lines(made.split.text, made.described.measures, fed.data.classes)
    if fed.drift.redraws:
        yield f"drift {fed.drift.text}: each round deals its clients' samples anew; measured is the split before that"
    if fed.data.source:
        yield "clients are made when they come, so none is evaluated on its own: there is no client accuracy"
    if name := made.facts.get("batchnorm"):
        yield f"BatchNorm, {name}: {POLICIES[name]}"
    if fed.longest == 1 and not fed.drift.redraws:
        yield "every client takes one local step a round: parts that act between steps change nothing; see --epochs"
    if not fed.data.source:
        yield from classes(set(fed.data.y.unique().tolist()), set(fed.data.test_y.unique().tolist()), fed.data.classes)


def classes(trained: set[int], tested: set[int], count: int) -> Iterator[str]:
    """Labels that stand in one part of the data only, or nowhere."""
    if unseen := sorted(tested - trained):
        said = f"the model has {count} classes with them"
        yield f"test labels that no training sample has: {few(unseen)}; nothing can learn them, and {said}"
    if idle := sorted(set(range(count)) - trained - tested):
        yield f"labels that no sample has: {few(idle)}; the model has a class for each (labels are counted from 0)"


def few(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
