"""The options of the command line. Nothing heavy is imported before they are read."""

from __future__ import annotations

import argparse
import difflib
import importlib
import re
from typing import Any, NoReturn

from holdfast import __version__

COMMANDS = (
    "run",
    "compare",
    "explain",
    "parts",
    "list",
    "data",
    "report",
    "calibrate",
    "flower",
)  # each a module of `holdfast.commands`


class Parser(argparse.ArgumentParser):
    """argparse, with the nearest option in its complaint and no usage in front of it."""

    def __init__(self, **options: Any):
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '([^']*)'", message)
        if wrong:
            names, words = [name for a in self._actions for name in a.choices or ()], [wrong[1]]
        else:
            names = [text.lstrip("-") for action in self._actions for text in action.option_strings]
            words = [word.split("=")[0].strip("-',:") for word in message.split() if word.startswith("--")]
        dashes = "" if wrong else "--"  # which every option has, so they make no two names alike
        near = [
            dashes + found[0]
            for word in words
            if word not in names and (found := difflib.get_close_matches(word, names, 1))
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
