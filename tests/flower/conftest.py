"""Without the extra there is nothing to test here."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs the extra: pip install holdfast[flower]", exc_type=ImportError)
sys.path.insert(0, str(Path(__file__).parent))
