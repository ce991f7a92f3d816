"""What the tests of the documentation share: its files, and the scripts that write its tables."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> dict[str, str]:
    """Every generated table."""
    sys.path.insert(0, str(DOCS))
    try:
        made: ModuleType = importlib.import_module("tables")
        folder = tmp_path_factory.mktemp("docs") / "tables"
        made.write(folder)
        made.write(folder)  # as at a second build
    finally:
        sys.path.remove(str(DOCS))
    return {path.stem: path.read_text() for path in folder.glob("*.md")}
