"""The way in. What it needs is imported inside, so that Ctrl-C is heard from the first moment on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        import os

        # OpenMP's threads burn a core while they wait for each other; beside anything else that runs, small models then
        # took many times as long. A short spin keeps the speed of an idle machine. Heard only before torch is loaded.
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
        from holdfast.commandline import carried_out

        return carried_out(arguments)
    except KeyboardInterrupt:  # while the first modules were read; `carried_out` hears the later ones itself
        import sys

        print("\nstopped before anything was done", file=sys.stderr)
        return 1
