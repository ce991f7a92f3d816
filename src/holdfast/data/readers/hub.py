"""Tables in the local caches of Hugging Face: parquet files of the hub, arrow files of `datasets`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.data.readers.needs import package
from holdfast.data.readers.pictures import decoded, stacked
from holdfast.data.readers.tree import Tree
from holdfast.errors import Refused

TRAIN = "*train*.parquet|*train*.arrow"
TEST = "*test*.parquet|*test*.arrow"
VALID = "*valid*.parquet|*valid*.arrow"
NEEDS = (TRAIN, TEST)


def records(tree: Tree, pattern: str, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Row by row, of all files that match in the order of their names: where it stands, and its fields."""
    for name in tree.find(pattern):
        start = 0
        for batch in batches(tree, name, columns):
            for offset, row in enumerate(batch):
                yield f"{tree.where(name)} row {start + offset}", row
            start += len(batch)


def batches(tree: Tree, name: str, columns: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    arrow = package("pyarrow", "data")
    data = io.BytesIO(tree.read(name))
    try:
        if name.endswith(".arrow"):
            found = package("pyarrow.ipc", "data").open_stream(data)
            check_columns(tree.where(name), found.schema.names, columns)
            yield from (batch.select(list(columns)).to_pylist() for batch in found)
        else:
            found = package("pyarrow.parquet", "data").ParquetFile(data)
            check_columns(tree.where(name), found.schema_arrow.names, columns)
            yield from (batch.to_pylist() for batch in found.iter_batches(batch_size=1000, columns=list(columns)))
    except (arrow.ArrowException, OSError) as error:
        raise Refused(f"{tree.where(name)}: is no whole table ({str(error).splitlines()[0]}); get it again") from None


def check_columns(where: str, held: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in held]
    if missing:
        raise Refused(f"{where}: has no field {' and no field '.join(missing)}; it has {', '.join(held)}")


def rows(tree: Tree, pattern: str, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Whole columns as lists."""
    held: dict[str, list[Any]] = {name: [] for name in columns}
    for _, row in records(tree, pattern, columns):
        for name in columns:
            held[name].append(row[name])
    return held


def images(
    tree: Tree,
    pattern: str,
    image: str,
    others: Sequence[str],
    size: int | None = None,
    mode: str = "RGB",
) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """A column of image files as [n, channels, height, width], and other columns as lists."""
    held: dict[str, list[Any]] = {name: [] for name in others}

    def pixels() -> Iterator[tuple[str, np.ndarray]]:
        for where, row in records(tree, pattern, (image, *others)):
            stored = row[image]
            if not isinstance(stored, Mapping) or not isinstance(stored.get("bytes"), bytes):
                raise Refused(f"{where}: its {image} holds no bytes of an image")
            for name in others:
                held[name].append(row[name])
            yield where, decoded(stored["bytes"], where, size, mode)

    return stacked(pixels(), count(tree, pattern)), held


def count(tree: Tree, pattern: str) -> int:
    """Rows in all, from the footers where there are such."""
    total = 0
    for name in tree.find(pattern):
        if name.endswith(".parquet"):
            parquet = package("pyarrow.parquet", "data")
            try:
                with tree.open(name) as stream:
                    total += parquet.ParquetFile(stream).metadata.num_rows
            except (package("pyarrow", "data").ArrowException, OSError) as error:
                reason = str(error).splitlines()[0]
                raise Refused(f"{tree.where(name)}: is no whole table ({reason}); get it again") from None
        else:
            total += sum(len(batch) for batch in batches(tree, name, ()))
    return total
