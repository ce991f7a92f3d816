"""What README and docs tell to type: every command is one, every name in it exists, every Python block runs."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.commands.options import OPTIONS
from holdfast.data import sets, splits
from holdfast.data.augment import augmentation
from holdfast.data.catalog import catalog
from holdfast.data.normal import normalised
from holdfast.data.sets import Column, Dataset
from holdfast.experiment import Run
from holdfast.models import MODELS
from holdfast.parser import parser_of
from holdfast.results import go
from holdfast.text import one, parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OWN = {*sets.SETS, "synthetic", "folder", "npz"}


def blocks(path, *languages):
    return [text for language, text in re.findall(r"^```([^\n]*)\n(.*?)^```$", path.read_text(), re.M | re.S)
            if language in languages]  # fmt: skip


def commands():
    """Lines of console blocks, and commands in a sentence or a table."""
    for path in PAGES:
        fenced = "\n".join(blocks(path, "", "console", "bash")).replace("\\\n", " ")
        spans = re.findall(r"`(holdfast [^`]+)`", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S))
        for line in [line for line in fenced.splitlines() if line.startswith("holdfast")] + spans:
            yield pytest.param(line, id=f"{path.name}: {line[:60]}")


@pytest.mark.parametrize("line", list(commands()))
def test_every_command_is_one(line):
    words = shlex.split(re.sub(r"[\[\]]|\.\.\.", "", line), comments=True)  # [NAME] may be left out, RUN... is several
    words = [word for word in words if words[1] != "list" or word not in ("OPTION", "NAME")]
    if re.fullmatch(r"holdfast( [a-z]+)+", line):  # only its name, in a sentence
        with pytest.raises(SystemExit, match="0"):
            parser_of().parse_args([*words[1:], "--help"])
    else:
        named(parser_of().parse_args(words[1:]))


def named(options: argparse.Namespace) -> None:
    """What the options name exists; the reason is raised where it does not."""
    given = {key: value for key, value in vars(options).items() if isinstance(value, str)}
    for text in [given.get("method", ""), *given.get("methods", "").split(";")]:
        if text and text != "METHOD":
            parse(text)
    if "split" in given and not given["split"].endswith(".json"):
        call = one(given["split"], "split")
        splits.check(call.name, call.options)
    if "model" in given:
        assert one(given["model"], "model").name in MODELS
    if "data" in given:
        assert one(given["data"], "data set").name in {*catalog(), *OWN}
    augmentation(given.get("augment", "none"))
    if "normalize" in given:
        normalised(given["normalize"])


def test_commands_are_found():
    """There is something to check in each of the pages that show commands."""
    assert {path.name for path in PAGES if blocks(path, "", "console", "bash")} >= {"README.md", "data.md", "splits.md"}
    assert len(list(commands())) > 30


# add-a-part.md shows a part that exists, which cannot be registered twice
PYTHON = [path for path in PAGES if blocks(path, "python") and path.name != "add-a-part.md"]


def test_python_blocks_run(tmp_path):
    """A page's one after another, as a reader types them, in one process for all, for torch is slow to import."""
    assert {path.name for path in PYTHON} >= {"README.md", "robust.md", "data.md", "splits.md", "models.md"}
    folder = tmp_path / "pages"
    folder.mkdir()
    for path in PYTHON:
        (folder / f"{path.stem}.py").write_text("\n".join(["import holdfast", *blocks(path, "python")]))
    code = "import glob, runpy, torch; torch.set_num_threads(1); [runpy.run_path(p) for p in glob.glob('pages/*')]"
    place = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_defaults_are_told_as_they_are():
    """The table of docs/commands.md, and the end of every help text, against the fields of Run."""
    rows = re.findall(r"^\| `--([\w-]+)` \| \[.* \| `(.*)` \|$", (ROOT / "docs" / "commands.md").read_text(), re.M)
    assert len(rows) == 5 and all(str(getattr(Run, name)) == value for name, value in rows)
    for name, _, text in OPTIONS:
        said = re.search(r" \((?!.* \()(.*)\)$", text)
        if name in dict(rows):
            assert said and said[1] == str(getattr(Run, name)), (name, text)


def test_every_option_of_a_data_set_is_told():
    told = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "data.md").read_text(), re.M)
    assert {key for text in told for key in re.findall(r"`(\w+)`", text)} == {
        key for entry in catalog().values() for key in entry.options
    }


def test_links_lead_somewhere():
    for path in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^):#]+)\)", path.read_text()):
            assert (path.parent / link).exists() or link.startswith("methods/"), f"{path.name}: {link}"


def documented():
    """The keys of the tables of docs/metrics.md, and those of private layers and of fine-tuning."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    cells = re.findall(r"^\| (`.*?) \|", text, re.M)
    figures = [f"personal_{key}" for key in ("accuracy", "pooled", "sd", "worst_decile")]
    assert all(f"`{key}`" in text for key in (*figures, "finetuned_...", "finetuned_lost"))
    tuned = [key.replace("personal", "finetuned") for key in figures]
    return {key for text in cells for key in re.findall(r"`([a-z_0-9]+)`", text)} | {*figures, *tuned}


def test_metrics_tells_every_key_that_runs_write():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(60, 4)).astype("float32"), np.arange(60) % 3
    where = {name: Column(("a", "b"), np.arange(40) % 2, np.arange(20) % 2) for name in ("domain", "corruption")}
    data = Dataset.of(x[:40], y[:40], x[40:], y[40:], columns=where)
    codes = np.stack([draw.integers(0, 4, 40) for _ in range(8)], 1)
    user = {"user": Column(("a", "b"), np.arange(20) % 2, np.arange(20) % 2)}
    hit = (np.arange(20) < 2).astype(int)  # one positive item a user
    clicks = Dataset.of(codes[:20], hit, codes[20:], hit, kind="clicks", codes=(4,) * 8, columns=user)
    common: dict[str, Any] = {"rounds": 1, "epochs": 1, "cohort": 2, "threads": 1}
    runs = (
        Run(data=data, split="domains", model="logreg", method="eve", finetune=1, **common),
        Run(data=data, split="domains", model="mlp(hidden=4)", method="fedper", **common),
        Run(data=clicks, split="natural(by='user')", model="din", **common),
    )
    found = {key for run in runs for row in go(run).metrics for key in row if "." not in key}
    assert found <= documented()
    assert documented() - found == {"dropped", "dropped_why", "diverged"}, "told, and written by no run"
