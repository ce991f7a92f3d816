"""From image files to one array [n, channels, height, width]."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

import numpy as np

from holdfast.data.readers.needs import package
from holdfast.data.readers.room import room
from holdfast.data.readers.tree import Tree
from holdfast.errors import Refused

MOST_PIXELS = 64 << 20  # an image of more is refused before it is decoded; HAM10000's have 0.27 million
MOST_BYTES = 256 << 20
KINDS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")


def is_picture(name: str) -> bool:
    """By its ending; not the shadow files that macOS puts into zips."""
    return name.lower().endswith(KINDS) and "__MACOSX/" not in name and not PurePosixPath(name).name.startswith("._")


def decoded(data: bytes, where: str, size: int | None = None, mode: str = "RGB") -> np.ndarray:
    """One image as [channels, height, width]; grey ones become RGB. With `size`, resized to a square (bilinear)."""
    image = package("PIL.Image", "data")
    try:
        with warnings.catch_warnings(), image.open(io.BytesIO(data)) as opened:
            warnings.simplefilter("ignore")  # the limit is ours, below
            if opened.width * opened.height > MOST_PIXELS:
                raise Refused(
                    f"{where}: is {opened.width} x {opened.height}; more than {MOST_PIXELS} pixels is refused"
                )
            plain = opened.convert(mode)
            if size is not None:
                plain = plain.resize((size, size), image.Resampling.BILINEAR)
            held = np.asarray(plain)
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        # Pillow says "cannot identify image file" with the address of our stream.
        reason = "of no kind that Pillow knows" if type(error).__name__ == "UnidentifiedImageError" else error
        raise Refused(f"{where}: is no whole image ({reason}); get it again") from None
    return held[None] if held.ndim == 2 else held.transpose(2, 0, 1)


def stacked(images: Iterable[tuple[str, np.ndarray]], count: int) -> np.ndarray:
    """`count` images of one size, each with the words that name it in a message."""
    held: np.ndarray | None = None
    first = ""
    for row, (where, image) in enumerate(images):
        if held is None:
            held, first = room((count, *image.shape)), where
        if image.shape != held.shape[1:]:
            raise Refused(
                f"{where} is {shown(image.shape)} and {first} is {shown(held.shape[1:])}: images of one set have one "
                "size; image_size=64 resizes them all"
            )
        held[row] = image
    if held is None:
        raise Refused("there are no images")
    return held


def shown(shape: Sequence[int]) -> str:
    return " x ".join(str(n) for n in shape)


def pictures(tree: Tree, names: Sequence[str], size: int | None = None, mode: str = "RGB") -> np.ndarray:
    """These files of a tree."""
    files = ((tree.where(n), decoded(tree.read(n, MOST_BYTES), tree.where(n), size, mode)) for n in names)
    return stacked(files, len(names))


def check_size(value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 4096):
        raise Refused(f"image_size={value!r} must be a whole number of pixels from 1 to 4096, or None to keep the size")


def check_share(value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1:
        raise Refused(f"test={value!r} must be a share above 0 and below 1, such as 0.2")


def check_options(image_size: object, test: object) -> None:
    check_size(image_size)
    check_share(test)


def held_out(groups: Sequence[object], share: float) -> np.ndarray:
    """Which rows are for testing: of every group this share (at least one where it has two), at random but always the
    same: rows of a group are ranked by Philox(0). [n] bool."""
    chosen = np.zeros(len(groups), bool)
    rows_of: dict[object, list[int]] = {}
    for row, group in enumerate(groups):
        rows_of.setdefault(group, []).append(row)
    rng = np.random.Generator(np.random.Philox(0))
    for rows in rows_of.values():
        many = max(round(share * len(rows)), 1) if len(rows) > 1 else 0
        chosen[rng.permutation(rows)[:many]] = True
    return chosen
