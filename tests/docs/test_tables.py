"""Every name that an option can take stands in the docs, with what it is; and no table is left out of its page."""

import re
from pathlib import Path

import pytest

from holdfast.choices import KINDS, PUBLISHED, constants, models, own_sets, presets, splits, steps
from holdfast.data import augment, dirichlet, files, normal, sets
from holdfast.data import splits as rules
from holdfast.data.catalog import catalog
from holdfast.data.steps import Crop
from holdfast.models import MODELS
from holdfast.text import one

DOCS = Path(__file__).parents[2] / "docs"


def rows(table):
    """Of a table with its head: the cells of every row."""
    return [line[2:-2].split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]


def firsts(table):
    return {re.sub(r"^`?\[?([\w:]+).*", r"\1", row[0]) for row in rows(table)}


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("sets", catalog()),
        ("copies", catalog()),
        ("own", {*sets.SETS, *files.SETS, "synthetic"}),
        ("models", MODELS),
        ("steps", {*augment.STEPS, augment.NORMALISE}),
        ("presets", augment.PRESETS),
        ("constants", normal.CONSTANTS),
    ],
)
def test_every_registered_name_has_a_row(tables, table, names):
    assert firsts(tables[table]) == set(names)


def test_every_split_has_a_section(tables):
    assert re.findall(r"^### (.*)", tables["splits"], re.M) == [*rules.RULES, "flower:NAME"]
    assert firsts(tables["splits"]) == set(dirichlet.RULES)
    ids = [(row[0], row[1], row[2].strip("`")) for row in rows(tables["published"])]
    assert ids == [(p.id or "", p.letter or "", p.text) for p in PUBLISHED]


def test_every_table_is_in_a_page(tables):
    pages = "".join(path.read_text() for path in DOCS.glob("*.md"))
    assert set(re.findall(r"```\{include\} tables/(\w+)\.md", pages)) == set(tables)
    listed = re.findall(r"^[\w/-]+$", (DOCS / "index.md").read_text(), re.M)
    assert set(listed) >= {path.stem for path in DOCS.glob("*.md")} - {"index"}


@pytest.mark.parametrize(
    "row", [row for call in KINDS.values() for row in call()] + own_sets(), ids=lambda r: r["name"]
)
def test_everything_says_what_it_is(row):
    assert len(row["what"].split()) >= 2, row["name"]
    assert row["text"].startswith(row["name"].removesuffix("NAME"))


def test_descriptions_are_of_the_names_there_are():
    assert set(augment.WHOSE) == set(augment.PRESETS) and set(normal.WHOSE) == set(normal.CONSTANTS)


def test_splits_of_the_papers_are_splits():
    """B3 of models-data-metrics and 3.3 of methods-local: all of their names, each with its rule."""
    assert {p.id for p in PUBLISHED} >= {"P1", "P2", "P3", "P4", "P5", "P5r", "P6", "P7", "P8"}
    assert {p.id: p.letter for p in PUBLISHED if p.letter} == {"P5r": "A", "P5": "B", "P4": "C", "P1": "D", "": "E"}
    for p in PUBLISHED:
        call = one(p.text, "split")
        wrong = rules.option_value_problems(call.name, call.options)
        assert [text for text in wrong if "no such file" not in text] == [], p.text
    told = {row["name"]: [p["text"] for p in row["published"]] for row in splits()}
    assert sorted(text for texts in told.values() for text in texts) == sorted(p.text for p in PUBLISHED)


def test_sizes_of_models_are_those_of_the_specs():
    """A2 of models-data-metrics."""
    told = {row["name"]: row["parameters"] for row in models()}
    wanted = {
        "resnet20": 272_474, "wrn56": 3_412_394, "resnet18": 11_181_642, "uv_resnet18": 11_705_546, "uv_cnn": 161_594,
        "densenet121": 6_956_298, "mobilenetv2": 2_296_922, "vit": 5_526_346, "moon_cnn": 92_626, "twoconv": 1_626_442,
        "dyn_cnn": 797_962, "lenet": 31_972, "leaf_cnn": 6_603_710, "wenzhu_cnn": 214_590, "charlstm": 819_920,
        "din": 205_398,
    }  # fmt: skip
    assert {name: told[name] for name in wanted} == wanted


def test_options_are_told_with_their_defaults():
    """Read off the signatures by hand."""
    crop = next(row for row in steps() if row["name"] == "crop")
    assert crop["text"] == "crop(pad=..., p=1.0, fill=0, border='constant')" and Crop(pad=4).p == 1
    shards = next(row for row in splits() if row["name"] == "shards")
    assert shards["options"] == {"k": "2", "clients": "100"} and shards["text"] == "shards(k=2, clients=100)"


def test_presets_stand_for_what_augmentation_makes_of_them():
    for row in presets():
        assert augment.augmentation(row["name"]) == augment.augmentation(row["stands_for"])
    for row in constants():
        mean, std = normal.normalised(row["name"])
        assert [value / 255 for value in (*mean, *std)] == pytest.approx([*row["mean"], *row["std"]])
