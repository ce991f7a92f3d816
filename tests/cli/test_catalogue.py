"""What `holdfast parts` and the docs say of every part and preset."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from holdfast import catalogue
from holdfast.parts import REGISTRY
from holdfast.presets import PRESETS
from holdfast.text import parse

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def told():
    return {catalogue.name_of(found): found for found in catalogue.everything()}


def test_everything_is_told(told):
    assert set(told) == set(REGISTRY) | set(PRESETS) | {"ccvr"}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_part_says_what_it_does_and_from_where(name):
    found = catalogue.words(REGISTRY[name])
    assert found.what, name
    assert catalogue.SOURCE.search(found.source), f"{name}: {found.source!r} names no year, equation or algorithm"
    assert re.search(r"<-|[=^/+~]", found.equation), f"{name}: {found.equation!r} is no equation"


def test_a_docstring_is_taken_apart():
    found = catalogue.words(REGISTRY["scaffold"])
    assert found.equation.startswith("g + c - c_i;") and found.source.startswith("Karimireddy et al. 2020, alg. 1")
    assert catalogue.words(REGISTRY["momentum"]).equation == "m <- beta m + g."
    assert catalogue.words(REGISTRY["momentum"]).source == "Polyak 1964"


def test_options_tell_their_values():
    assert catalogue.options(REGISTRY["prox"])["mu"] == {"default": "0.1", "range": "a number >= 0"}
    assert catalogue.options(REGISTRY["avgm"])["form"]["range"] == "one of 'dampened', 'heavy'"
    assert catalogue.values(bool, "") == "True or False"
    assert catalogue.values(str | float, "> 0") == "text or a number > 0"


def test_costs_are_those_of_the_specs(told):
    """methods-local 2.3; tests/golden/test_sheets.py has them all."""
    paid = told["scaffold"]["cost"]
    assert [paid[key] for key in ("down", "up", "memory", "state", "passes")] == [2, 2, 1, 2, 1]
    assert told["fedsam"]["cost"]["passes"] == 2 and told["gh"]["cost"]["needs"] == "individual updates"


def test_a_part_that_cannot_stand_alone_is_shown_beside_another(told):
    assert told["specpert"]["beside"] == "sam" and told["scaffold"]["beside"] == ""
    parse("sam + specpert")


def test_exclusions_are_told_on_both_sides(told):
    assert told["nova"]["excludes"]["dyn"] == told["dyn"]["excludes"]["nova"]


def test_the_list(hold):
    rows = [json.loads(line) for line in hold("parts --json").out.splitlines()]
    assert [row["part"] for row in rows if "part" in row] == sorted(REGISTRY)
    out = hold("parts").out
    for word in (
        "dyn(alpha=0.1, ",
        "Acar et al. 2021",
        "down 2, up 2, memory 1, server 2, passes 1",
        "(beside sam)",
        "fedfft_d",
    ):
        assert word in out, word
    assert "preset sam + specpert" in hold("parts fedfft").out


def test_ccvr_is_told_beside_the_parts(hold, told):
    """methods-server 2: one-off, per class f + f(f+1)/2 + 1; Luo et al. 2021."""
    for line in ("parts", "parts ccvr"):
        out = hold(line).out
        for word in (
            "holdfast calibrate RUN --ccvr",
            "S_c = (sum_k (N_ck",
            "Luo et al. 2021",
            "f + f(f + 1)/2 + 1 num",
        ):
            assert word in out, (line, word)
    out = hold("parts ccvr").out
    assert "samples: 1000, a whole number >= 1" in out and "No Fear of Heterogeneity" in out and "skipped" in out
    assert json.loads(hold("parts ccvr --json").out)["cites"] == ["luo2021"] == told["ccvr"]["cites"]
    assert "did you mean ccvr?" in hold("parts cvr").err


def test_the_pages_of_the_docs(told, tmp_path):
    spec = importlib.util.spec_from_file_location("docs_methods", DOCS / "methods.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "gone.md").write_text("a part that is no more")
    module.write(tmp_path)
    assert {path.stem for path in tmp_path.glob("*.md")} == {*told, "index"}
    page = (tmp_path / "scaffold.md").read_text()
    for word in ("# scaffold", "c <- c + 1/N sum_S", "Karimireddy et al. 2020", "2 x model", "@inproceedings"):
        assert word in page, word
    assert "| client | ascend | `sam` |" in (tmp_path / "fedfft.md").read_text()
    index = (tmp_path / "index.md").read_text()
    assert all(f"| [{name}]({name}.md) |" in index for name in told)
