"""The command that does a run again, written from its [run] table."""

from __future__ import annotations

import shlex
from typing import Any

from holdfast.report.gather import RunView

# The defaults of `holdfast.experiment.Run`, as run.toml writes them; not imported from there because that loads torch,
# and a test holds the two together.
DEFAULTS: dict[str, Any] = {
    "method": "fedavg",
    "data": "digits",
    "split": "dirichlet(alpha=0.1, clients=100)",
    "model": "cnn",
    "augment": "none",
    "normalize": "data",
    "data_dir": "",
    "rounds": 50,
    "cohort": 10,
    "epochs": 5,
    "batch": 20,
    "lr": 0.1,
    "lr_decay": 1.0,
    "server_lr": 1.0,
    "drop_last": False,
    "seed": 0,
    "eval_every": 1,
    "checkpoint_every": 10,
    "on_nan": "stop",
    "drift": "both",
    "proxy": 0.0,
    "finetune": 0,
    "engine": "auto",
    "lanes": 0,
    "compile": False,
    "threads": 0,
    "dtype": "float32",
    "device": "cpu",
    "ray_address": "",
    "workers": 0,
    "workers_per_gpu": 1,
}
ALWAYS = ("method", "seed")  # what a reader looks for, default or not
GIVEN = "given in Python:"  # how run.toml names an object that has no text


def command(view: RunView) -> str | None:
    """`holdfast run ...` with what is not the default; None where the run was made of Python objects."""
    run = dict(view.run)
    if from_elsewhere(view):
        run["split"] = str(view.folder / "split.json")
    if given(run):
        return None
    words = ["holdfast", "run"]
    for key, value in run.items():
        if key in ALWAYS or value != DEFAULTS.get(key):
            words += option(key.replace("_", "-"), value)
    return shlex.join([*words, *option("out", f"{view.folder}-again")])


def given(run: dict[str, Any]) -> list[str]:
    """The parts of a run that only exist in a Python program."""
    return [key for key, value in run.items() if isinstance(value, str) and value.startswith(GIVEN)]


def from_elsewhere(view: RunView) -> bool:
    """Whether the split is one that the run's own seed does not make: it is then read from the run's folder."""
    other = view.split_seed is not None and view.split_seed != view.seed
    return other or str(view.run["split"]).startswith(GIVEN)


def option(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    text = str(value)
    return [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]
