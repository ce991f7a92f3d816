"""The options of a run, shared by the commands that carry out or cost one."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

# name, type, help; no defaults here, so that a resumed run can tell what was given
OPTIONS: tuple[tuple[str, Any, str], ...] = (
    (
        "data",
        str,
        "of `holdfast data list`, synthetic(...), folder(path='...'), npz(path='...'), "
        "or package.module:callable (digits)",
    ),
    ("split", str, "of `holdfast list split`, or a split.json (dirichlet(alpha=0.1, clients=100))"),
    (
        "augment",
        str,
        "what is done to training images, such as 'crop(pad=4) + flip', of `holdfast list augment` (none)",
    ),
    (
        "normalize",
        str,
        "constants that normalise, of `holdfast list normalize`, or data, the training samples' own (data)",
    ),
    ("data-dir", str, "where data sets lie ($HOLDFAST_DATA, else ~/.cache/holdfast)"),
    ("model", str, "of `holdfast list model`, timm:NAME, torchvision:NAME, or package.module:callable (cnn)"),
    ("rounds", int, "rounds in all (50)"),
    ("cohort", str, "clients a round: a number, or bernoulli(0.1) (10)"),
    ("epochs", int, "local epochs a round (5)"),
    ("steps", int, "local steps a round, instead of epochs"),
    ("batch", int, "batch size (20)"),
    ("lr", float, "local learning rate (0.1)"),
    ("lr-decay", float, "factor of lr from round to round (1)"),
    ("server-lr", float, "learning rate of the server (1)"),
    ("drop-last", None, "leave out the last, smaller batch of an epoch"),
    ("seed", int, "of split, model, cohorts and batches (0)"),
    ("eval-every", int, "evaluate every so many rounds, and after the last (1)"),
    ("checkpoint-every", int, "keep a checkpoint every so many rounds, and at the end (10)"),
    ("on-nan", str, "an update that is not finite: 'stop', or 'drop' that client (stop)"),
    (
        "drift",
        str,
        "both (plain); period or client(alpha=0.1): each round's data is pooled and dealt anew, evenly or by classes; "
        "for no drift, an iid split with both (both)",
    ),
    ("proxy", float, "share of the test data that the server keeps to learn on, for methods that do (0)"),
    ("finetune", int, "epochs that every client tunes the final model on its own data, to score it (0)"),
    ("engine", str, "auto, loop, batched or ray (auto: loop or batched, read from a table of measurements)"),
    ("lanes", int, "clients that batched steps at once, and of a shard of ray (0: the plan chooses)"),
    ("compile", None, "compile the batched step with torch.compile"),
    ("threads", int, "torch threads (0: torch's own number)"),
    ("dtype", str, "float32 or float64 (float32)"),
    ("device", str, "cpu, cuda, ... (cpu)"),
    ("ray-address", str, "head of a ray cluster, host:port or auto ($RAY_ADDRESS, else one is started here)"),
    ("workers", int, "processes of ray, each of --threads cores (0: as many as there is room for)"),
    ("workers-per-gpu", int, "ray workers that share a GPU (1)"),
)
EXTRAS = {"methods", "seeds", "target"}  # of a comparison
FIELDS = {name.replace("-", "_") for name, _, _ in OPTIONS} | {"method"}


def number(kind: type[int] | type[float]) -> Callable[[str], Any]:
    """Reads a number; what is none stays text, so that it is refused together with all else that is wrong."""

    def read(text: str) -> Any:
        for reading in (kind, float):
            with contextlib.suppress(ValueError):
                return reading(text)
        return text

    return read


def add_options(command: argparse.ArgumentParser, leave_out: tuple[str, ...] = ()) -> None:
    for name, kind, text in OPTIONS:
        if name in leave_out:
            continue
        if kind is None:
            command.add_argument(f"--{name}", action="store_true", default=argparse.SUPPRESS, help=text)
        else:
            shown = name.rpartition("-")[2].upper()
            command.add_argument(
                f"--{name}",
                type=kind if kind is str else number(kind),
                default=argparse.SUPPRESS,
                help=text,
                metavar=shown,
            )


def folder(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it is empty; name a folder, or . for the current one")
    return text


def add_file(command: argparse.ArgumentParser, kept: str = "the run.toml of a run") -> None:
    command.add_argument("experiment", nargs="?", help=f"a TOML file with options, or {kept} to repeat")
    text = "an option over the file's; what stands on the command line as --key is over both"
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=text)
