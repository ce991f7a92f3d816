"""On a small ResNet, two rounds: what the papers combine, and three hundred sums that nobody chose."""

from __future__ import annotations

import pytest
from _draw import compositions, covered

from holdfast.laboratory import Lab, batched, same, unsound
from holdfast.method import Method
from holdfast.presets import PRESETS
from holdfast.text import parse

COUNT, LEAST, SEED, ROUNDS = 300, 10, 20240810, 2

# ML 2.2 and MS 1.2: what the five papers run.
PAPERS = [
    "fedfft", "fedfft_s", "fedfft_d", "scaffold + sam", "dyn + sam", "awa + sam", "awa + sam + specpert", "per + sam",
    "per + sam + specpert", "dyn + specgrad", "specgrad", "prox + specgrad", "scaffold + specgrad", "awa + specgrad",
    "specgrad(kind='lap') + scaffold", "specgrad(kind='gauss') + scaffold", "specgrad(kind='fft2')", "gh", "prox + gh",
    "nova + gh", "decorr + gh", "univar", "univar(lam=0.0)", "univar(mu=0.0)", "eve",
    "nova + gh + momentum",  # FedGH's own setting has local momentum
]  # fmt: skip


def agree(method: Method) -> None:
    """`batched` is `loop` after each of two rounds; parts with jumps start the second round where the loop stood."""
    lab = Lab("resnet")
    loop = lab.run(method, rounds=ROUNDS)
    assert not (names := unsound(loop)), f"not finite: {names[:4]}"
    moved = float((loop[-1].server.w - lab.task(method).start).abs().max())
    assert moved > 1e-6, f"it moved by {moved:.3g}: two runs that stand still agree on nothing"
    along = loop if any(p.jumps for p in method.parts) else ()
    for t, (a, b) in enumerate(zip(loop, lab.run(method, batched(2), rounds=ROUNDS, along=along), strict=True)):
        same(a, b, 1e-12, f"loop and batched, after round {t + 1}")


@pytest.mark.parametrize("text", [*PAPERS, *(name for name in PRESETS if name not in PAPERS)])
def test_what_the_papers_run(text: str) -> None:
    agree(parse(text))


@pytest.mark.slow
@pytest.mark.parametrize("method", compositions(COUNT, SEED), ids=lambda method: str(method).replace(" ", ""))
def test_composition_on_a_small_resnet(method: Method) -> None:
    agree(method)


def test_coverage() -> None:
    """All 300 count, or the test above fails."""
    covered(compositions(COUNT, SEED), COUNT, LEAST)
