"""`holdfast flower init`: a Flower app of a few lines around a method text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast import checkpoint
from holdfast.data.named import expression
from holdfast.data.sets import Dataset
from holdfast.errors import Refused
from holdfast.experiment import Run
from holdfast.flower.policy import policy
from holdfast.text import one
from holdfast.wanted import wanted_data

PLAIN = ("rounds", "cohort", "epochs", "steps", "batch", "lr", "lr_decay", "server_lr", "drop_last", "seed",
         "eval_every", "dtype", "augment")  # fmt: skip

PYPROJECT = """\
[project]
name = "{name}"
version = "1.0.0"
description = "A federation of Holdfast in Flower"
license = "Apache-2.0"
dependencies = ["flwr>=1.41,<1.42", "holdfast[flower]"]

[tool.flwr.app]
publisher = "holdfast"
# What goes to every site: never keys, never anybody's data.
fab-include = ["server_app.py", "client_app.py", "site_data.py", "nodes.toml"]

[tool.flwr.app.components]
serverapp = "server_app:app"
clientapp = "client_app:app"

[tool.flwr.app.config]
{config}
"""
SERVER_APP = '''\
"""The server's side. Client 0 is the first key of nodes.toml."""

from pathlib import Path

from holdfast.flower.server import server_app

app = server_app(Path(__file__).with_name("nodes.toml"))
'''
CLIENT_APP = '''\
"""A site's side. Its samples come from site_data.py, or from the node's own site-file."""

import site_data

from holdfast.flower.client import client_app

app = client_app(site_data)
'''
SITE_DATA = '''\
"""What this site trains and is tested on: x [n, ...] and whole-number labels y [n], as NumPy arrays.

`site` is this site's number of `sites`. To begin with, every site reads its share of {data}; put your own arrays here,
and `shape`, `classes`, `mean` and `std` of all sites' samples into pyproject.toml.
"""

from holdfast.flower.share import test_share, train_share

DATA, SPLIT, SEED = {data!r}, {split!r}, {seed}


def train(site, sites):
    return train_share(DATA, SPLIT, SEED, site)


def test(site, sites):
    return test_share(DATA, SPLIT, SEED, site, sites)
'''
NODES = "# The allow-list, as holdfast flower keys writes it; a simulation needs none.\n"
IGNORED = "keys/\nrun/\nstate/\nlogs/\n.flwr/\n__pycache__/\n"


def write(folder: Path, run: Run, clients: int, how: str, given: Mapping[str, Any]) -> list[Path]:
    """The app, in a folder that holds nothing else."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} exists and is not an empty folder; choose another")
    policy(how)
    data = wanted_data(run)
    if data.codes or data.source or data.kind != "classes":
        raise Refused(f"{data.name}: only sets of images or tables with a class each can be dealt to Flower sites")
    table = config(folder, run, clients, how, data, given)
    files = {
        "pyproject.toml": PYPROJECT.format(name=name(folder), config=toml(table)),
        "server_app.py": SERVER_APP,
        "client_app.py": CLIENT_APP,
        "nodes.toml": NODES,
        "site_data.py": SITE_DATA.format(data=run.text("data"), split=run.text("split"), seed=run.seed),
        ".gitignore": IGNORED,
    }
    checked(table)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        checkpoint.replace(folder / file, text.encode())
    return [folder / file for file in files]


def config(
    folder: Path, run: Run, clients: int, how: str, data: Dataset, given: Mapping[str, Any]
) -> dict[str, Any]:  # fmt: skip
    fixed = {"rounds", "cohort", "epochs" if run.steps is None else "steps", "batch", "lr", "seed"}
    plain = {key.replace("_", "-"): run.text(key) for key in PLAIN if key in fixed or key in given}
    return {
        "method": str(run.text("method")),
        "model": expression(*one(str(run.model), "model")[:2]),
        **plain,
        "clients": clients,
        "shape": ", ".join(map(str, data.shape)),
        "classes": data.classes,
        "mean": ", ".join(map(repr, data.mean)),
        "std": ", ".join(map(repr, data.std)),
        "policy": how,
        "out": str((folder / "run").resolve()),
    }


def checked(table: Mapping[str, Any]) -> None:
    """What the server would refuse is refused before it is written."""
    from holdfast.flower.recipe import for_server

    for_server(table)


def name(folder: Path) -> str:
    """As Flower wants one: lower case letters, digits and dashes."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in folder.resolve().name.lower()).strip("-")
    return kept[:32] or "federation"


def toml(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items())
