"""What the catalogue knows of a data set: where it comes from, which files it has, how they are recognised and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset


class File(NamedTuple):
    """A file as it is published, with what is publicly known of it."""

    name: str
    md5: str = ""
    sha256: str = ""
    size: int = 0  # in bytes; 0 where it is not known
    url: str = ""  # where `holdfast data import NAME --download` gets it; none: not from us


class Layout(NamedTuple):
    """One form in which users have a data set.

    It fits a tree when every pattern of `needs` matches one of its files (fnmatch on '/' + the path inside, so
    '*/data_batch_1' finds it at any depth and * crosses folders). `read` is called with a tree that fits and with the
    options of the entry by name; what is wrong inside is `Refused`, naming the file.
    """

    what: str  # 'python pickles (cifar-10-batches-py)': told when nothing was found
    needs: tuple[str, ...]
    read: Callable[..., Dataset]
    base: str = ""  # another set that it may need: `read` gets `base=` a function that loads it

    def fits(self, tree: Tree) -> bool:
        return all(tree.has(pattern) for pattern in self.needs)


@dataclass(frozen=True)
class Entry:
    """A data set of the catalogue."""

    name: str
    title: str  # one line: what it is
    samples: str  # '50,000 + 10,000 of 32 x 32 x 3, 10 classes', as published
    licence: str
    home: str  # the address of its page
    cite: str  # BibTeX
    layouts: tuple[Layout, ...]  # tried in this order
    files: tuple[File, ...] = ()  # checked by name before anything is read
    places: tuple[str, ...] = ()  # inside a data folder: where torchvision and others put it (file or folder, glob)
    hub: tuple[str, ...] = ()  # Hugging Face repositories, looked for in the local cache and never fetched
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of its readers, with their defaults
    check: Callable[..., None] | None = None  # called with all options; refuses values that no reader takes
    how: str = ""  # how to get it, where it cannot be downloaded by us
    note: str = ""  # what a user should know of it
