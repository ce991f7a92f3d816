"""The options of a run, shared by the commands that carry out or cost one; and how they are read."""

from __future__ import annotations

import argparse
import difflib
import re
import tomllib
from pathlib import Path
from typing import Any

from holdfast.errors import Refused

# name, type, help; no defaults here, so that a resumed run can tell what was given
OPTIONS: tuple[tuple[str, Any, str], ...] = (
    ("data", str, "a data set (digits), or package.module:callable"),
    ("split", str, "iid, dirichlet, classes with options, or a split.json (dirichlet(alpha=0.1, clients=100))"),
    ("model", str, "logreg, mlp, cnn, resnet20 with options, or package.module:callable (cnn)"),
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
    ("engine", str, "auto, loop or batched (auto: read from a table of measurements)"),
    ("lanes", int, "clients that batched steps at once (0: the plan chooses)"),
    ("compile", None, "compile the batched step with torch.compile"),
    ("threads", int, "torch threads (0: torch's own number)"),
    ("dtype", str, "float32 or float64 (float32)"),
    ("device", str, "cpu, cuda, ... (cpu)"),
)
FIELDS = {name.replace("-", "_") for name, _, _ in OPTIONS} | {"method"}


def add_options(command: argparse.ArgumentParser, leave_out: tuple[str, ...] = ()) -> None:
    for name, kind, text in OPTIONS:
        if name in leave_out:
            continue
        if kind is None:
            command.add_argument(f"--{name}", action="store_true", default=argparse.SUPPRESS, help=text)
        else:
            shown = name.rpartition("-")[2].upper()
            command.add_argument(f"--{name}", type=kind, default=argparse.SUPPRESS, help=text, metavar=shown)


def add_file(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", nargs="?", help="a TOML file with options, or the run.toml of a run to repeat")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option over the file's")


def given(options: argparse.Namespace, file: dict[str, Any]) -> dict[str, Any]:
    """What was asked for: the file, then --set, then the options of the command line."""
    found, problems = dict(file), list[str]()
    for text in options.set:
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            problems.append(f"--set {text!r} is not of the form key=value")
        else:
            found[key] = literal(value.strip())
    problems += [unknown(key, FIELDS | EXTRAS) for key in found if key not in FIELDS | EXTRAS]
    if problems:
        raise Refused(*problems)
    return found | {key: value for key, value in vars(options).items() if key in FIELDS}


EXTRAS = {"methods", "seeds", "target"}  # of a comparison


def literal(text: str) -> Any:
    """A value as TOML has it; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def unknown(key: str, known: set[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    return f"there is no option '{key}'" + (
        f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(known))}"
    )


def read(path: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The [run] table of a file (or its bare keys), and the whole file; mistakes are told with their line."""
    if path is None:
        return {}, {}
    try:
        text = Path(path).read_text(encoding="utf-8")
        whole = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise Refused(f"cannot read {path}: {said}; it stands where a TOML file is expected, see --help") from error
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"{path} is not TOML: {error}") from error
    table = whole.get("run", {key: value for key, value in whole.items() if not isinstance(value, dict)})
    table = {key.replace("-", "_"): value for key, value in table.items()}
    wrong = [key for key in table if key not in FIELDS | EXTRAS]
    if wrong:
        raise Refused(*(f"{path}, line {line_of(text, key)}: {unknown(key, FIELDS | EXTRAS)}" for key in wrong))
    return table, whole


def line_of(text: str, key: str) -> int:
    pattern = re.compile(rf"\s*[\"']?{re.escape(key).replace('_', '[-_]')}[\"']?\s*=")
    return next((i for i, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)
