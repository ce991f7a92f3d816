"""Options that only some methods have: what FedEve shows, which tensors a filter takes. AD, ML: see rig."""

import re
from pathlib import Path

import pytest
import torch
from rig import BEGIN, CENTRES, CURVES, close, quadratics

from holdfast.errors import Refused
from holdfast.text import parse
from holdfast.vector import Layout

PAGE = Path(__file__).parents[2] / "docs" / "forms.md"


def test_the_forms_that_the_page_names_exist():
    """docs/forms.md, the last column of 'Built': every code span that is no bare value or list of options."""
    built = PAGE.read_text().partition("## Built")[2].partition("## Not built")[0]
    rows = [line.rstrip("|").rpartition("|")[2] for line in built.splitlines() if line.startswith("| ")][2:]
    named = [text for row in rows for text in re.findall(r"`([^`]+)`", row) if text[0].isalpha() and "=," not in text]
    assert len(named) >= 15
    for text in named:
        parse(text)


GAINS = {  # AD A4, the golden rows of FedEve
    "eve": (0.338918, 0.279297, 0.222138),
    "eve(q_mode='energy')": (0.338918, 0.354171, 0.293178),
}


@pytest.mark.parametrize("text", GAINS)
def test_eve_shows_its_estimates(text):
    """AD A4: the gain of every round; it is v/(v + R) with v = s + Q, all of which stand in the server's state."""
    fed, before = quadratics(text), 0.0
    for gain in GAINS[text]:
        fed.go(5)
        q, r, kept = (float(fed.state("eve", key)) for key in ("q", "r", "v"))
        close(fed.state("eve", "gain"), gain, 0.51e-6)
        close(fed.state("eve", "gain"), (before + q) / (before + q + r))
        before = kept


def test_the_filter_of_a_transformer_takes_its_patches_only():
    """ML 7.3: only the patch embedding is filtered; its name tells it."""
    layout = Layout(("patch_embed.proj.weight", "blocks.0.attn.weight", "head.weight"), ((4,), (3,), (1,)), 8)
    free, held = (quadratics(f"specgrad(r=0.4{scope})", CURVES, CENTRES, BEGIN, layout=layout)
                  for scope in ("", ", scope='patch'"))  # fmt: skip
    plain = quadratics("fedavg", CURVES, CENTRES, BEGIN, layout=layout)
    for fed in (free, held, plain):
        fed.go(3)
    assert torch.equal(held.server.w[4:], plain.server.w[4:]) and torch.equal(held.server.w[:4], free.server.w[:4])
    assert not torch.equal(held.server.w[:4], plain.server.w[:4])
    with pytest.raises(Refused, match=r"scope='stem'.*means no tensor.*patch_embed"):
        quadratics("specgrad(scope='stem')", CURVES, CENTRES, BEGIN, layout=layout).go(1)
