"""Sphinx, strict: `make docs` fails on any warning."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Holdfast"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
exclude_patterns = ["_build", "tables"]  # tables are included by pages
myst_heading_anchors = 3
smartquotes = False  # options are told in plain quotes and dashes, as they are typed
autodoc_typehints = "description"


def setup(app: Any) -> None:
    """A page for every part and preset and the tables of the registries, before Sphinx looks for files."""
    import methods
    import tables

    methods.write(HERE / "methods")
    tables.write(HERE / "tables")
