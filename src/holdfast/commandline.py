"""From arguments to an exit code: 0 done, 1 failed or stopped, 2 bad input; no traceback unless --debug asks."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from holdfast.errors import Failed, Refused
from holdfast.parser import parser_of

KEPT = ("run.toml", "compare.toml")  # what `--resume` goes on with


def carried_out(arguments: Sequence[str] | None) -> int:
    parser, options = parser_of(), None
    streams()
    with heard(lambda: stopped(options)):
        try:
            options, unknown = parser.parse_known_args(arguments)
            if unknown:
                options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
            standing()
            code = options.command(options)
            sys.stdout.flush()
            return code
        except Refused as refused:
            return complain(options, refused, 2)
        except Failed as failed:
            return complain(options, failed, 1)
        except BrokenPipeError:  # whoever read the output has gone
            return unread(options)
        except KeyboardInterrupt:
            return stopped(options)
        except OSError as error:
            return complain(options, Failed(f"{error.strerror}{f': {error.filename}' if error.filename else ''}"), 1)
        except Exception as error:
            if options is not None and options.debug:
                raise
            print(f"holdfast: unexpected {type(error).__name__}: {error}\n  --debug shows where", file=sys.stderr)
            return 1


@contextlib.contextmanager
def heard(leave: Callable[[], int]) -> Iterator[None]:
    """Ctrl-C while a module is imported ends the process by `leave`: torch, half read, makes a crash of an exception.

    Nothing is being written then. At any other moment it is the exception that Python makes of it.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                if sys.stdout.isatty():
                    os.write(1, b"\x1b[?25h")  # the cursor, which a progress bar hides
                code = leave()
                sys.stderr.flush()
                os._exit(code)
            frame = frame.f_back
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def streams() -> None:
    """A stream that the caller has closed leads nowhere; else the first file that is opened would take its place."""
    handle = os.open(os.devnull, os.O_RDWR)
    while handle <= 2:
        handle = os.dup(handle)
    os.close(handle)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def standing() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise Refused(f"the current folder cannot be used: {error.strerror}; change to one that exists") from error


def unread(options: argparse.Namespace | None) -> int:
    """A run has stopped short and kept its last round; of a list as much was read as was wanted."""
    for number in (1, 2):
        with contextlib.suppress(OSError, ValueError):
            (sys.stdout if number == 1 else sys.stderr).flush()
            continue
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return stopped(options) if hasattr(options, "resume") else 0


def stopped(options: argparse.Namespace | None) -> int:
    """Says what is true of what was kept."""
    out = getattr(options, "out", None) if hasattr(options, "resume") else None
    kept = out is not None and any((Path(out) / name).is_file() for name in KEPT)
    more = "; --resume goes on" if kept else "; nothing was written" if out else ""
    print(f"\nstopped{more}", file=sys.stderr)
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
