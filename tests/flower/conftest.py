"""The tests of a folder share `nodes.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
