"""Makes src/holdfast/data/digits.npz, the data set that ships with holdfast. Byte for byte repeatable.

Source: scikit-learn's `load_digits` (1797 images of 8 x 8, values 0 to 16, ten classes), which is the test part of
"Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak, UCI Machine Learning Repository 1998,
doi:10.24432/C50P49, licensed CC BY 4.0. scikit-learn itself is BSD-3-Clause.

    python -m venv /tmp/digits && /tmp/digits/bin/pip install scikit-learn==1.5.2
    /tmp/digits/bin/python bench/make_digits.py            # writes the file, prints its sha256
    /tmp/digits/bin/python bench/make_digits.py --check    # writes nothing, exit 1 if the file would change
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

TARGET = Path(__file__).resolve().parents[1] / "src" / "holdfast" / "data" / "digits.npz"
TEST_SIZE = 360
SEED = 20


def stratified_test(labels: np.ndarray) -> np.ndarray:
    """Sorted indices of the test set: every class gives its share, largest remainders are rounded up."""
    classes, sizes = np.unique(labels, return_counts=True)
    share = sizes * TEST_SIZE / len(labels)
    take = np.floor(share).astype(int)
    take[np.argsort(take - share, kind="stable")[: TEST_SIZE - take.sum()]] += 1
    # RandomState, not Generator: only its stream is frozen for ever, so the file can be made again years later.
    rng = np.random.RandomState(SEED)
    chosen = [rng.permutation(np.flatnonzero(labels == c))[:k] for c, k in zip(classes, take, strict=True)]
    return np.sort(np.concatenate(chosen)).astype("<i2")


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    """An .npz without compression and without dates: compressed bytes would differ from one zlib to the next."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            archive.writestr(info, member.getvalue())
    return buffer.getvalue()


def main() -> int:
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]  # only in a throw-away venv

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the shipped file, write nothing")
    check = parser.parse_args().check
    digits = load_digits()
    labels = digits.target.astype(np.uint8)
    content = packed({"images": digits.images.astype(np.uint8), "labels": labels, "test": stratified_test(labels)})
    print(hashlib.sha256(content).hexdigest(), len(content), "bytes")
    if check:
        return 0 if TARGET.is_file() and TARGET.read_bytes() == content else 1
    TARGET.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
