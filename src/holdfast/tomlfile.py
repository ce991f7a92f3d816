"""A TOML file with the line of every key, and what is said of the names in it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import Refused


class File(NamedTuple):
    path: str
    text: str
    tables: dict[str, Any]

    def place(self, key: str, table: str = "") -> str:
        """'PATH, line n' of a key of a table, or the path where it does not stand there."""
        return places(self.path, self.text, table).get(key, self.path)


def read(path: Path, advice: str) -> File:
    """What is no TOML is refused in words; `advice` is the way out."""
    try:
        text = path.read_text(encoding="utf-8")
        return File(str(path), text, tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise Refused(f"{path} cannot be read: it is not UTF-8 text; {advice}") from error
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}; {advice}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Refused(f"{path} is not TOML: {error}; {advice}") from error


def places(path: str, text: str, table: str) -> dict[str, str]:
    """'PATH, line n' of every key of a table, '' being those before any, and of every '[table]'."""
    found: dict[str, str] = {}
    here = ""
    for i, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[+\s*([\w.\"'-]+)\s*\]", line):
            here = head[1].strip("\"'")
            found.setdefault(f"[{here}]", f"{path}, line {i}")
        elif here == table and (key := re.match(r"\s*([\"']?)([\w-]+)\1\s*=", line)):
            found.setdefault(key[2], f"{path}, line {i}")
    return found


def near(name: str, known: Iterable[str]) -> str:
    """'; did you mean lr?', or nothing where no name is near."""
    found = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""
