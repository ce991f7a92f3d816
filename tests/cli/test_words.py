"""`explain`, `parts NAME`, and experiments as TOML files."""

import json
import re
from pathlib import Path

import pytest

from holdfast.parts import REGISTRY
from holdfast.references import entries

RUN = "--threads 1 --split 'iid(clients=20)' --cohort 5 --model logreg"


def test_explain_tells_the_pipeline_in_the_order_of_a_round(hold):
    told = json.loads(hold("explain 'specgrad + scaffold + sam + gh' --json").out)
    order = [(step["slot"], step["part"].partition("(")[0]) for step in told["pipeline"]]
    assert order == [
        ("cast", "scaffold"), ("ascend", "sam"), ("transform", "specgrad"), ("correct", "scaffold"),
        ("close", "scaffold"), ("weigh", ""), ("merge", "gh"), ("update", "scaffold"),
    ]  # fmt: skip
    sheet = dict(told["sheet"])
    # methods-local table 2.3: FedGAMMA sends and receives twice the model and takes two passes.
    assert "(2.00 x model)" in sheet["down"] and "(2.00 x model)" in sheet["up"] and sheet["passes a step"] == "2"
    assert sheet["needs individual updates"] == "yes"
    assert sum(text.startswith("@") for text in told["citations"]) == 5


def test_explain_refuses_like_run(hold):
    done = hold("explain 'fedavg + specgard'")
    assert done.code == 2 and "did you mean specgrad" in done.err


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_part_has_its_page(hold, name):
    whole = json.loads(hold(f"parts {name} --json").out)
    assert whole["bibtex"].startswith("@") and set(whole["options"]) == set(REGISTRY[name]().options())
    assert name in hold(f"parts {name}").out


def test_every_entry_of_the_bibliography_has_author_title_and_year():
    for key, entry in entries().items():
        assert all(re.search(rf"\b{field} = ", entry) for field in ("author", "title", "year")), key


def test_an_unknown_part(hold):
    done = hold("parts scafold")
    assert done.code == 2 and "scaffold" in done.err


def test_a_run_from_a_file_with_changes(hold, folder):
    Path("e.toml").write_text('method = "fedprox"\nrounds = 5\nlr-decay = 0.9\nthreads = 1\nmodel = "logreg"\n')
    assert hold("run e.toml --set rounds=2 --set \"split='iid(clients=20)'\" --cohort 5 --out a").code == 0
    line = f"run {RUN} --method fedprox --rounds 2 --lr-decay 0.9 --out b"
    assert hold(line).code == 0
    assert folder("a").bits == folder("b").bits


def test_run_toml_repeats_a_run_to_the_same_bits(hold, folder):
    assert hold(f"run {RUN} --method feddyn --rounds 3 --engine batched --lanes 2 --out a").code == 0
    assert hold("run a/run.toml --out b").code == 0
    assert folder("a").bits == folder("b").bits and folder("a").same == folder("b").same


@pytest.mark.parametrize(
    "text, words",
    [
        ('method = "fedavg"\nrouns = 3\n', ["line 2", "rouns", "did you mean rounds"]),
        ("rounds = = 3\n", ["not TOML", "line 1"]),
        ('rounds = "ten"\n', ["rounds='ten'", "whole number"]),
        ("lr = true\n", ["lr=True", "number"]),
        ('methods = ["fedavg"]\n', ["compare"]),
        ("method = 3\n", ["method=3"]),
    ],
)
def test_a_wrong_file_is_named_with_its_line(hold, text, words):
    Path("e.toml").write_text(text)
    done = hold("run e.toml --out a")
    assert done.code == 2 and all(word in done.err for word in words), done.err
    assert not Path("a").exists()


def test_a_missing_file_and_a_wrong_set(hold):
    assert "no.toml" in hold("run no.toml").err
    done = hold("run --set rounds --set lrr=1")
    assert done.code == 2 and "key=value" in done.err
