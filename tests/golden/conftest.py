"""The tests import `rig` from this folder. Everything here is small: one thread is the fastest."""

import sys
from pathlib import Path

import torch

if str(Path(__file__).parent) not in sys.path:
    sys.path.append(str(Path(__file__).parent))

torch.set_num_threads(1)
