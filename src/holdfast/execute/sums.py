"""Whether torch adds in one order wherever memory begins. `holdfast/__init__.py` asks for it, and may ask too late."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

import torch

KINDS = ("strict", "free", "unknown")
STRICT, ALL = 0x10000, -1  # MKL_CBWR_STRICT and MKL_CBWR_ALL of mkl_types.h
LIBRARY = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"  # MKL is linked into it


def in_force() -> str:
    """'strict', or 'free' where MKL may add in another order; 'unknown' where torch has no MKL that can be asked."""
    with contextlib.suppress(OSError, AttributeError):
        return "strict" if ctypes.CDLL(str(LIBRARY)).mkl_serv_cbwr_get(ALL) & STRICT else "free"
    return "unknown"


def advice() -> str:
    """What to say where sums are free; empty where they are not."""
    if in_force() != "free":
        return ""
    own = os.environ.get("MKL_CBWR", "")
    why = "torch multiplied before holdfast was imported" if "STRICT" in own else f"MKL_CBWR={own} is set"
    return f"{why}, so a client's last bits may depend on its lane; import holdfast first or set MKL_CBWR=AUTO,STRICT"
