"""a real federation: write a Flower app around a method, make its keys, start it"""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path
from typing import Any

from holdfast.errors import Failed, Refused

EXAMPLES = """\
examples:
  holdfast flower init fed --method "scaffold + specgrad(r=0.05)" --model mlp --rounds 3
  holdfast flower keys fed --nodes 3
  holdfast flower start fed
"""
OPTIONS = ("data", "split", "model", "rounds", "cohort", "epochs", "steps", "batch", "lr", "lr-decay", "server-lr",
           "drop-last", "seed", "eval-every", "augment", "dtype")  # fmt: skip
POLICY = "about nodes that are late or wrong: wait, drop, quorum(n=2) or deadline(seconds=60) (wait)"


def add(command: argparse.ArgumentParser) -> None:
    from holdfast.commands.options import OPTIONS as ALL
    from holdfast.commands.options import add_options

    tasks = command.add_subparsers(metavar="TASK", required=True, parser_class=type(command))

    def task(name: str, call: Any, about: str, example: str) -> argparse.ArgumentParser:
        made = tasks.add_parser(name, help=about, description=about, epilog=f"example:\n  holdfast flower {example}")
        made.add_argument("folder", metavar="DIR", help="the folder of the app")
        for flag, what in (("--json", "JSON on standard output, for scripts"), ("--debug", "show tracebacks")):
            made.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=what)
        made.set_defaults(task=call, parser=made)
        return made

    init = task("init", init_, "write the app: configuration, two sides, a site's data", 'init fed --method "fedavg"')
    init.add_argument("--method", default=argparse.SUPPRESS, help="a sum of parts and presets (fedavg)")
    init.add_argument("--sites", type=int, default=3, help="how many sites there are (3)")
    init.add_argument("--policy", default="wait", help=POLICY)
    init.add_argument("--secagg", action="store_true", help="secure aggregation, which is refused; see docs/flower.md")
    add_options(init, leave_out=tuple(name for name, _, _ in ALL if name not in OPTIONS))
    keys = task("keys", keys_, "make certificates, node keys and the allow-list", "keys fed --nodes 3")
    keys.add_argument("--nodes", type=int, default=3, help="how many (3)")
    keys.add_argument("--host", action="append", default=[], help="a name or address of the server beside loopback's")
    start = task("start", start_, "start SuperLink and SuperNodes on this machine, and the run", "start fed")
    start.add_argument("--simulate", action="store_true", help="in Flower's simulation instead: no nodes, no keys")


def command(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("flwr") is None:
        raise Refused("holdfast flower needs the extra: pip install holdfast[flower]")
    return options.task(options)


def init_(options: argparse.Namespace) -> int:
    from holdfast.experiment import Run
    from holdfast.flower import app
    from holdfast.flower.secure import insecure

    if options.sites < 1:
        raise Refused(f"sites={options.sites} must be at least 1")
    given = {k: v for k, v in vars(options).items() if k in {"method", *(name.replace("-", "_") for name in OPTIONS)}}
    run = Run(**{"split": f"dirichlet(alpha=0.5, clients={options.sites})", "cohort": options.sites, **given})
    if options.secagg:
        raise insecure(run)
    folder = Path(options.folder)
    files = app.write(folder, run, options.sites, options.policy, given)
    return tell(options, files, f"next: holdfast flower keys {folder} --nodes {options.sites}")


def keys_(options: argparse.Namespace) -> int:
    from holdfast.flower import keys

    if options.nodes < 1:
        raise Refused(f"nodes={options.nodes} must be at least 1")
    files = keys.write(Path(options.folder), options.nodes, (*keys.HOSTS, *options.host))
    return tell(options, files, f"next: holdfast flower start {options.folder}")


def start_(options: argparse.Namespace) -> int:
    from holdfast.flower.start import start

    tell = (lambda text: None) if options.json else (lambda text: print(text, flush=True))
    status = start(Path(options.folder), tell, options.simulate)
    if options.json:
        print(json.dumps({"status": status}))
    if status != "finished:completed":
        raise Failed(f"the run ended as {status}; see {Path(options.folder) / 'logs'}; start again to go on")
    return 0


def tell(options: argparse.Namespace, files: list[Path], more: str) -> int:
    if options.json:
        print(json.dumps({"files": [str(path) for path in files]}))
    else:
        print(f"wrote {', '.join(str(path) for path in files)}\n{more}")
    return 0
