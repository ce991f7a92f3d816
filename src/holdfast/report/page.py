"""The report: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.errors import Refused
from holdfast.report.curves import curves
from holdfast.report.gather import Group
from holdfast.report.notes import lead
from holdfast.report.result import result
from holdfast.report.sections import cost, repeat, split


def render(
    groups: Sequence[Group], *, title: str, rows: Sequence[dict[str, Any]] | None = None, target: float | None = None,
    command: str = "",
) -> str:  # fmt: skip
    """The whole page. `rows` is a ready table; without it one is computed. `target` is an accuracy to be reached."""
    if not groups:
        raise Refused("no run to report; name the folders of runs, or a folder that holds them")
    parts = {
        "result": ("Result", result(groups, rows, target)),
        "curves": ("Curves", curves(groups, target)),
        "split": ("Split", split(groups)),
        "cost": ("Cost", cost(groups)),
        "repeat": ("Repeat", repeat(groups, command)),
    }
    return document(title, lead(groups), parts)


def document(title: str, about: str, parts: Mapping[str, tuple[str, str]]) -> str:
    """A page of these sections: their names and HTML, by their ids."""
    style, script = asset("style.css"), asset("page.js")
    nav = "".join(f'<a href="#{key}">{name}</a>' for key, (name, _) in parts.items())
    body = "".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{name}</h2>{part}</section>'
        for key, (name, part) in parts.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="generator" content="holdfast {escape(__version__)}">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header><div class="top"><p class="mark-of">holdfast report</p><nav aria-label="Sections">{nav}</nav>'
        '<button type="button" id="theme" hidden>Dark</button></div>'
        f'<h1>{escape(title)}</h1><p class="lead">{escape(about)}</p></header>\n'
        f"<main>{body}</main>\n<footer><p>Written by holdfast {escape(__version__)} . "
        "This file is complete: it loads nothing.</p></footer>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def asset(name: str) -> str:
    return (files("holdfast.report") / name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Only this style and this script: a text that slipped through unescaped would still not run."""
    own = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{own[0]}'; script-src 'sha256-{own[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def write(path: str | os.PathLike[str], html: str) -> None:
    """Whole or not at all: written beside the file and renamed."""
    path, draft = Path(path), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(html)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(draft, 0o666 & ~umask)
        os.replace(draft, path)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}; choose another place with -o") from error
    finally:
        if draft is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
