"""The oracles import `_net` from this folder, the tests also `_twin` and golden's `rig`. One thread is the fastest."""

import sys
from pathlib import Path

import torch

HERE = Path(__file__).parent
for folder in (HERE, HERE.parents[1] / "golden"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

torch.set_num_threads(1)
