"""Imports holdfast once, then forks a process for every line of JSON it reads: a real process, without the imports.

Request: {"argv": [...], "cwd": folder, "log": name, "die": [n, folder] or null}; answer: {"pid": ...}.
Request: {"wait": pid}; answer: {"status": exit code, or minus the signal}.
With `die`, the process kills itself (SIGKILL) just before its n-th operation on a file below the folder.
"""

import contextlib
import io
import json
import os
import signal
import sys

import torch

import holdfast.cli

WATCHED = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree"}


def die_at(n: int, folder: str) -> None:
    seen = [0]

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event in WATCHED and args and isinstance(args[0], (str, os.PathLike)):
            seen[0] += os.path.abspath(os.fspath(args[0])).startswith(folder)
            if seen[0] == n:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def child(request: dict) -> None:
    code = 70
    try:
        os.chdir(request["cwd"])
        for number, kind in ((1, "out"), (2, "err")):
            handle = os.open(f"{request['log']}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        if request["die"]:
            die_at(*request["die"])
        code = holdfast.cli.main(request["argv"])
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    torch.set_num_threads(1)
    for engine in ("loop", "batched"):  # imports everything that a run imports
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            holdfast.cli.main(["run", "--rounds", "1", "--cohort", "2", "--threads", "1", "--engine", engine])
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = {"status": os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])}
        else:
            pid = os.fork()
            if not pid:
                child(request)
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)


main()
