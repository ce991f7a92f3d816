"""Toy networks gain nothing from threads, and pytest-xdist already fills the cores; tests here share `_draw`."""

import sys
from pathlib import Path

import torch

torch.set_num_threads(1)
if str(Path(__file__).parent) not in sys.path:
    sys.path.append(str(Path(__file__).parent))
