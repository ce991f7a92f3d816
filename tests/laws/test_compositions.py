"""Two hundred sums of two to six parts that nobody chose: all laws hold but one, see COSTLY."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement

import pytest
from _draw import compositions, covered, pairs, possible

from holdfast.laboratory import Lab, reference, unsound
from holdfast.laws import APPLIES, LAWS
from holdfast.method import Method
from holdfast.slots import SLOTS, Codec

COUNT, LEAST, SEED = 200, 10, 20240808


# What is left to `make test-all`, but for every 20th composition, for its time. `active` is left out: beside others a
# part may rightly change nothing, as a clip of gradients that another has already shortened, or `gh` of one client.
COSTLY = ("purity", "company", "neutral", "edges", "trace")
EVERY = 20


@pytest.mark.parametrize("method", compositions(COUNT, SEED), ids=lambda method: str(method).replace(" ", ""))
def test_composition(method: Method) -> None:
    for network in ("group", "batch"):
        lab = Lab(network)
        states = reference(lab, method)
        assert not (names := unsound(states)), f"does not count: not finite: {names[:4]}"
        gap = float((states[-1].server.w - lab.task(method).start).abs().max())
        assert gap > 1e-6, f"does not count: it moved by {gap:.3g}"
    # In float32 too: options are float64 scalars, and one that reaches a state fails beside some other part.
    broken: list[str] = []
    # What a codec rounds off jumps by whole levels, so coarser arithmetic is not compared behind one.
    coded = any(p.fills(Codec) for p in method.parts)
    for law in ("executors", "text", "declared", *(() if coded else ("float32",))):
        try:
            LAWS[law](method)
        except AssertionError as error:
            broken.append(str(error))
    assert not broken, "\n".join(broken)


CASES = [
    pytest.param(law, method, marks=[] if k % EVERY == 0 else [pytest.mark.slow])
    for k, method in enumerate(compositions(COUNT, SEED)) for law in COSTLY if APPLIES[law](method)
]  # fmt: skip


@pytest.mark.parametrize(("law", "method"), CASES, ids=lambda value: str(value).replace(" ", ""))
def test_costly_law(law: str, method: Method) -> None:
    LAWS[law](method)


def test_no_law_is_forgotten() -> None:
    assert set(LAWS) == {"executors", "float32", "text", "declared", "active", *COSTLY}


def test_coverage(capsys: pytest.CaptureFixture[str]) -> None:
    """All compositions count, or `test_composition` fails; so coverage can be read off them."""
    drawn = compositions(COUNT, SEED)
    times = Counter(p.name for method in drawn for p in method.parts)
    met = set[tuple[str, str]]().union(*(pairs(method) for method in drawn))
    every = {tuple(sorted((a.__name__, b.__name__))) for a, b in combinations_with_replacement(SLOTS, 2)}
    wanted = possible()
    never = sorted(" x ".join(pair) for pair in every - wanted.keys())
    with capsys.disabled():
        sizes = dict(sorted(Counter(len(method.parts) for method in drawn).items()))
        print(f"\n{len(drawn)} compositions by number of parts: {sizes}")
        both = len(met & wanted.keys())
        print(f"{len(times)} parts, the rarest {times.most_common()[-1]}; {both} of {len(wanted)} pairs")
        print(f"of slots that parts can fill; no two parts fill {', '.join(never)}")
    covered(drawn, COUNT, LEAST)
