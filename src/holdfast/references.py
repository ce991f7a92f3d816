"""BibTeX of what the parts cite, from `references.bib`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def entries() -> dict[str, str]:
    text = files("holdfast").joinpath("references.bib").read_text(encoding="utf-8")
    found = re.findall(r"^(@\w+\{(\w+),.*?^\})", text, re.MULTILINE | re.DOTALL)
    return {key: entry for entry, key in found}


def bibtex(key: str) -> str:
    return entries()[key]
