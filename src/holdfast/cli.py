"""The command line. Nothing heavy is imported before the arguments are read."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from holdfast import __version__
from holdfast.errors import Failed, Refused

COMMANDS = ("run", "compare", "explain", "parts", "report", "calibrate", "data")  # each a module of `holdfast.commands`


class Parser(argparse.ArgumentParser):
    """argparse, with the nearest option in its complaint and no usage in front of it."""

    def __init__(self, **options: Any):
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '([^']*)'", message)
        if wrong:
            names, words = [name for a in self._actions for name in a.choices or ()], [wrong[1]]
        else:
            names = [text for action in self._actions for text in action.option_strings]
            words = [word.split("=")[0].strip("',:") for word in message.split() if word.startswith("--")]
        near = [
            found[0] for word in words if word not in names and (found := difflib.get_close_matches(word, names, 1))
        ]
        if near:
            message += f"; did you mean {' and '.join(near)}?"
        self.exit(2, f"{self.prog}: {message}\n  {self.prog} --help lists what there is\n")


def parser_of() -> Parser:
    parser = Parser(
        prog="holdfast",
        description="Federated learning on heterogeneous data: methods as sums of parts.",
        epilog='example:\n  holdfast run --method "scaffold + specgrad(r=0.05)" --rounds 20 --out runs/a',
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name in COMMANDS:
        module = importlib.import_module(f"holdfast.commands.{name}")
        about = (module.__doc__ or "").strip().splitlines()[0]
        command = commands.add_parser(name, help=about, description=about, epilog=module.EXAMPLES)
        module.add(command)
        command.add_argument("--json", action="store_true", help="JSON on standard output, for scripts")
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(command=module.command, parser=command)
    return parser


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
        return int(hasattr(options, "resume"))  # a run has stopped short; a list has been read as far as was wanted
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
    problems = error.problems if isinstance(error, Refused) else (str(error),)
    lines = [f"holdfast: {len(problems)} problems", *(f"- {p}".replace("\n", "\n  ") for p in problems)]
    if len(problems) == 1:
        lines = [f"holdfast: {problems[0]}"]
    if isinstance(error, Refused) and error.advice:
        lines.append(f"  {error.advice}")
    print("\n".join(lines), file=sys.stderr)
    return code
