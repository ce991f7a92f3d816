"""Sphinx, strict: `make docs` fails on any warning."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Holdfast"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_typehints = "description"


def setup(app: Any) -> None:
    """A page for every part and preset, before Sphinx looks for files."""
    import methods

    methods.write(HERE / "methods")
