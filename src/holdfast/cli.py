"""The command line. Nothing heavy is imported before the arguments are read."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from holdfast import __version__
from holdfast.errors import Failed, Refused

RUN_HELP = """\
examples:
  holdfast run --method "scaffold + specgrad(r=0.05)" --rounds 20 --out runs/a
  holdfast run --data digits --split "dirichlet(alpha=0.1, clients=100)" --model cnn --cohort 10 --epochs 5
  holdfast run --out runs/a --resume --rounds 40
"""


NOT_OF_A_RUN = {"command", "parser", "json", "debug", "out", "resume"}


class Parser(argparse.ArgumentParser):
    """argparse, with the nearest option in its complaint and no usage in front of it."""

    def error(self, message: str) -> NoReturn:
        parsers = [self, *(p for a in self._actions if isinstance(a.choices, dict) for p in a.choices.values())]
        known = [text for parser in parsers for action in parser._actions for text in action.option_strings]
        known += [name for a in self._actions if isinstance(a.choices, dict) for name in a.choices]
        for word in message.split():
            near = difflib.get_close_matches(word.split("=")[0].strip("',:"), known, 1)
            if near and near[0] != word.strip("',:()") and (word.startswith("--") or "invalid choice" in message):
                message += f"; did you mean {near[0]}?"
                break
        self.exit(2, f"{self.prog}: {message}\n  {self.prog} --help lists what there is\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser, options = parser_of(), None
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        code = options.command(options)
        sys.stdout.flush()
        return code
    except Refused as refused:
        return complain(options, refused, 2)
    except Failed as failed:
        return complain(options, failed, 1)
    except BrokenPipeError:  # whoever read the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        kept = getattr(options, "out", None)
        print("\nstopped" + ("; --resume goes on from the last checkpoint" if kept else ""), file=sys.stderr)
        return 1
    except OSError as error:
        return complain(options, Failed(f"{error.strerror}{f': {error.filename}' if error.filename else ''}"), 1)
    except Exception as error:
        if options is not None and options.debug:
            raise
        print(f"holdfast: unexpected {type(error).__name__}: {error}\n  --debug shows where", file=sys.stderr)
        return 1


def complain(options: argparse.Namespace | None, error: Exception, code: int) -> int:
    if options is not None and options.debug:
        raise error
    print(f"holdfast: {error}", file=sys.stderr)
    return code


def parser_of() -> Parser:
    parser = Parser(
        allow_abbrev=False,
        prog="holdfast", description="Federated learning on heterogeneous data: methods as sums of parts.",
        epilog='example: holdfast run --method "scaffold + specgrad(r=0.05)" --rounds 20 --out runs/a',
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    raw = argparse.RawDescriptionHelpFormatter
    run = commands.add_parser("run", allow_abbrev=False, help="one experiment", epilog=RUN_HELP, formatter_class=raw)
    add_run_options(run)
    run.set_defaults(command=run_command, parser=run)
    parts = commands.add_parser(
        "parts",
        allow_abbrev=False,
        help="the catalogue of parts and presets",
        epilog="example: holdfast parts",
        formatter_class=raw,
    )
    parts.set_defaults(command=parts_command, parser=parts)
    for command in (run, parts):
        command.add_argument("--json", action="store_true", help="one JSON object a line on standard output")
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def add_run_options(run: Parser) -> None:
    """Options without a default here, so that a resumed run can tell what was given."""

    def add(name: str, kind: Any, text: str, **more: Any) -> None:
        run.add_argument(f"--{name}", type=kind, default=argparse.SUPPRESS, help=text, **more)

    def switch(name: str, text: str) -> None:
        run.add_argument(f"--{name}", action="store_true", default=argparse.SUPPRESS, help=text)

    add("method", str, "a sum of parts and presets (fedavg); 'holdfast parts' lists them")
    add("data", str, "a data set (digits), or package.module:callable")
    add("split", str, "iid, dirichlet, classes with options, or a split.json (dirichlet(alpha=0.1, clients=100))")
    add("model", str, "logreg, mlp, cnn, resnet20 with options, or package.module:callable (cnn)")
    add("rounds", int, "rounds in all (50)")
    add("cohort", str, "clients a round: a number, or bernoulli(0.1) (10)")
    add("epochs", int, "local epochs a round (1)")
    add("steps", int, "local steps a round, instead of epochs")
    add("batch", int, "batch size (20)")
    add("lr", float, "local learning rate (0.1)")
    add("lr-decay", float, "factor of lr from round to round (1)")
    add("server-lr", float, "learning rate of the server (1)")
    switch("drop-last", "leave out the last, smaller batch of an epoch")
    add("seed", int, "of split, model, cohorts and batches (0)")
    add("eval-every", int, "evaluate every so many rounds, and after the last (1)")
    add("checkpoint-every", int, "keep a checkpoint every so many rounds, and at the end (10)")
    add("on-nan", str, "an update that is not finite: 'stop', or 'drop' that client (stop)", metavar="WHAT")
    add("engine", str, "auto, loop or batched (auto: read from a table of measurements)")
    add("lanes", int, "clients that batched steps at once (0: the plan chooses)")
    switch("compile", "compile the batched step with torch.compile")
    add("threads", int, "torch threads (0: torch's own number)")
    add("dtype", str, "float32 or float64 (float32)")
    add("device", str, "cpu, cuda, ... (cpu)")
    run.add_argument("--out", help="the run's folder; without it nothing is kept")
    run.add_argument("--resume", action="store_true", help="go on with the run in --out")


def run_command(options: argparse.Namespace) -> int:
    from holdfast.experiment import Run
    from holdfast.results import go

    given = {k: v for k, v in vars(options).items() if k not in NOT_OF_A_RUN}
    rounds = [0]

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def each(row: dict[str, Any]) -> None:
        rounds[0] = row["round"]
        print(json.dumps(row) if options.json else line(row), flush=True)

    result = go(Run(**given), options.out, options.resume, set(given), tell, each)
    if options.json:
        print(json.dumps({"summary": result.summary, "folder": options.out, "done": result.done}), flush=True)
    else:
        print(closing(result.summary, options.out), flush=True)
    if not result.done:
        on = "--resume goes on" if options.out else "nothing was kept, for there was no --out"
        print(f"stopped after round {rounds[0]} of {result.run.rounds}; {on}", file=sys.stderr)
        return 1
    return 0


def line(row: dict[str, Any]) -> str:
    """One round for a person."""
    score = [f"{name.replace('_', ' ')} {row[name]:.4f}" for name in ("accuracy", "personal_accuracy") if name in row]
    loss = "" if row["train_loss"] is None else f"  train loss {row['train_loss']:.4f}"
    dropped = f"  dropped {row['dropped']}" if "dropped" in row else ""
    return f"round {row['round']:>4}  {'  '.join(score)}{loss}  {row['train_seconds']:.2f} s{dropped}"


def closing(summary: dict[str, Any], out: str | None) -> str:
    scores = ", ".join(f"{key.replace('_', ' ')} {value:.4f}" for key, value in summary.items() if key != "rounds")
    return f"{summary['rounds']} rounds: {scores or 'not evaluated'}" + (f"\nkept in {out}" if out else "")


def parts_command(options: argparse.Namespace) -> int:
    from holdfast.parts import REGISTRY
    from holdfast.presets import PRESETS

    if options.json:
        for name, cls in sorted(REGISTRY.items()):
            slots = [slot.__name__.lower() for slot in cls.slots()]
            print(json.dumps({"part": name, "text": cls().text(full=True), "slots": slots, "about": about(cls)}))
        for name, text in PRESETS.items():
            print(json.dumps({"preset": name, "method": text or "fedavg"}))
        return 0
    print("parts")
    for _, cls in sorted(REGISTRY.items()):
        slots = ", ".join(slot.__name__.lower() for slot in cls.slots())
        print(f"  {cls().text(full=True)}\n      {about(cls)}  [{slots}]")
    print("presets")
    for name, text in PRESETS.items():
        print(f"  {name:<15} {text or 'the plain average: no part'}")
    return 0


def about(cls: type) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0]
