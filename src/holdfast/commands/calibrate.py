"""the last layer of a finished run, trained anew on features drawn from class statistics"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Refused

if TYPE_CHECKING:
    from holdfast.ccvr import Calibrated, Options
    from holdfast.experiment import Ready
    from holdfast.simulate import State

EXAMPLES = """\
examples:
  holdfast calibrate runs/a --ccvr samples=1000
  holdfast calibrate runs/a --ccvr "samples=500, epochs=20, lr=0.01, batch=64" --out calibrated/a
"""
FILES = ("calibrated.safetensors", "calibrated.json")


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a run that has done its last round")
    text = "CCVR's options: features drawn a class, and the SGD on them (samples=1000, epochs=10, lr=0.01, batch=64)"
    command.add_argument("--ccvr", default="", metavar="OPTIONS", help=text)
    command.add_argument("--out", help=f"where {' and '.join(FILES)} go (the run's folder); older ones are replaced")


def command(options: argparse.Namespace) -> int:
    asked = read(options.ccvr)
    from holdfast.ccvr import calibrated
    from holdfast.folder import alone
    from holdfast.live import Live
    from holdfast.results import ended, threads

    folder, out = Path(options.run), Path(options.out or options.run)
    if not folder.is_dir():
        raise Refused(f"{folder} is not a folder; give the folder of a run, as --out named it")
    with alone(folder), Live(options.json) as live:
        made, state = ended(folder, live.tell)
        with threads(made.plan.threads):
            found = calibrated(made.federation, state, asked)
        write(out, made, state, found, asked)
    files = [str(out / name) for name in FILES]
    if options.json:
        print(json.dumps({"before": found.before, "after": found.after, "skipped": found.skipped, "files": files}))
    else:
        print(f"accuracy {found.before:.4f} before, {found.after:.4f} after\nkept in {' and '.join(files)}")
    return 0


def read(text: str) -> Options:
    """`samples=1000, lr=0.01` as the options of a call."""
    from holdfast.ccvr import Options
    from holdfast.text import one

    call, known = one(f"ccvr({text})", "calibration"), asdict(Options())
    wrong = [f"ccvr has no option '{key}'; {hint(key, known)}" for key in call.options if key not in known]
    if wrong:
        raise Refused(*wrong)
    return Options(**call.options)


def hint(key: str, known: dict[str, Any]) -> str:
    near = get_close_matches(key, known, 1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"


def write(out: Path, made: Ready, state: State, found: Calibrated, asked: Options) -> None:
    """The whole model by the names of its tensors, and how it came about."""
    from safetensors.torch import save

    from holdfast import checkpoint
    from holdfast.folder import made_folder

    tensors = {**made.federation.task.layout.split(found.w), **state.server.buffers}
    facts = {
        "calibration": "ccvr", **asdict(asked), "method": str(made.federation.method), "seed": made.run.seed,
        "round": state.round, "before": found.before, "after": found.after, "skipped": found.skipped,
        "counts": found.counts,
    }  # fmt: skip
    made_folder(out)
    blob = save({name: t.detach().contiguous().cpu() for name, t in tensors.items()})
    for name, content in zip(FILES, (blob, (json.dumps(facts, indent=1) + "\n").encode()), strict=True):
        try:
            checkpoint.replace(out / name, content)
        except OSError as error:
            raise Refused(f"cannot write {out / name}: {error.strerror}; choose another --out") from error
