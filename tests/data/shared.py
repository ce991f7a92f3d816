"""The real data beside the project (see its README.md): found, decoded once, and kept in the temporary folder."""

import io
import json
import lzma
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

_BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "data"
_FOUND = Path(os.environ.get("HOLDFAST_SHARED") or _BESIDE)
SHARED = _FOUND if (_FOUND / "README.md").is_file() else None
needs_shared = pytest.mark.skipif(SHARED is None, reason=f"the real data is not here: {_FOUND} (or $HOLDFAST_SHARED)")


def shared(name: str) -> Path:
    assert SHARED is not None
    return SHARED / name


def kept(key: str, sources: list[Path], make) -> np.ndarray:
    """What `make()` returns, from a file of an earlier call if the sources still have the same sizes."""
    sizes = "-".join(str(path.stat().st_size) for path in sources)
    path = Path(tempfile.gettempdir()) / f"holdfast-shared-{os.getuid()}" / f"{key}-{sizes}.npy"
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            np.save(file, make())
        os.replace(file.name, path)  # whole or not there, also beside another test process
    return np.load(path, mmap_mode="r")


def strips(paths: list[Path]) -> np.ndarray:
    """The README's packing of CIFAR: lossless WebP strips of 100 images; [n, 32, 32, 3]."""
    from PIL import Image

    held = []
    for path in paths:
        with zipfile.ZipFile(path) as packed:
            for name in sorted(packed.namelist()):
                image = Image.open(io.BytesIO(packed.read(name))).convert("RGB")
                held.append(np.asarray(image).reshape(-1, 32, 32, 3))
    return np.concatenate(held)


def cifar(name: str, part: str) -> np.ndarray:
    """The images of 'cifar10' or 'cifar100', 'train' or 'test', [n, 32, 32, 3] uint8."""
    pytest.importorskip("PIL", reason="pillow is needed to unpack the real data")
    pieces = ["train_0", "train_1"] if part == "train" else ["test"]
    paths = [shared(f"{name}_{piece}.zip") for piece in pieces]
    return kept(f"{name}-{part}", paths, lambda: strips(paths))


def labels(name: str) -> dict[str, np.ndarray]:
    """The arrays of `NAME_labels.npz`: labels, and the sha256 of the pixels."""
    with np.load(shared(f"{name}_labels.npz"), allow_pickle=False) as held:
        return {key: held[key] for key in held.files}


def unpacked(name: str) -> dict[str, np.ndarray]:
    """The arrays of a `NAME.npz.xz`."""
    with np.load(io.BytesIO(lzma.decompress(shared(f"{name}.npz.xz").read_bytes())), allow_pickle=False) as held:
        return {key: held[key] for key in held.files}


def texts(name: str):
    """The object of a `NAME.json.xz`."""
    return json.loads(lzma.decompress(shared(f"{name}.json.xz").read_bytes()))
