"""PACS: seven classes in four domains (photo, art, cartoon, sketch)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.data.columns import Column
from holdfast.data.readers import hub
from holdfast.data.readers.entry import Entry, Layout
from holdfast.data.readers.pictures import check_options, held_out, is_picture, pictures
from holdfast.data.readers.tree import Tree, told
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")


def folders(tree: Tree, image_size: int | None = 64, test: float = 0.2) -> Dataset:
    found = {name: name.split("/")[-3:-1] for name in tree.names if is_picture(name) and name.count("/") >= 2}
    names = [name for name, (domain, _) in found.items() if domain in DOMAINS]
    unknown = [name for name in names if found[name][1] not in CLASSES]
    if unknown:
        raise Refused(f"{tree.where(unknown[0])}: {found[unknown[0]][1]!r} is none of the classes {', '.join(CLASSES)}")
    domains = np.asarray([DOMAINS.index(found[name][0]) for name in names], np.int64)
    labels = np.asarray([CLASSES.index(found[name][1]) for name in names], np.int64)
    return parted(pictures(tree, names, image_size), labels, domains, test)


def parquet(tree: Tree, image_size: int | None = 64, test: float = 0.2) -> Dataset:
    """As flwrlabs/pacs has it: image, domain, label."""
    x, held = hub.images(tree, hub.TRAIN, "image", ("domain", "label"), image_size)
    unknown = sorted({str(domain) for domain in held["domain"]} - set(DOMAINS))
    if unknown:
        raise Refused(f"{tree.path}: {told(unknown[0])} is none of the domains {', '.join(DOMAINS)}")
    domains = np.asarray([DOMAINS.index(domain) for domain in held["domain"]], np.int64)
    return parted(x, np.asarray(held["label"], np.int64), domains, test)


def parted(x: np.ndarray, labels: np.ndarray, domains: np.ndarray, share: float) -> Dataset:
    """A share of every class of every domain is for testing."""
    groups: Sequence[object] = list(zip(domains.tolist(), labels.tolist(), strict=True))
    test = held_out(groups, share)
    column = Column(DOMAINS, domains[~test], domains[test])
    arrays = x[~test], labels[~test], x[test], labels[test]
    return Dataset.of(*arrays, classes=len(CLASSES), name="pacs", columns={"domain": column})


ENTRIES = (
    Entry(
        name="pacs",
        title="PACS: seven kinds of things as photographs, art, cartoons and sketches (column 'domain')",
        samples="9,991 in all (photo 1,670, art 2,048, cartoon 2,344, sketch 3,929) of 3 x 227 x 227, 7 classes",
        licence="none stated",
        home="https://dali-dl.github.io/project_iccv2017.html",
        cite="""\
@inproceedings{li2017,
  author = {Li, Da and Yang, Yongxin and Song, Yi-Zhe and Hospedales, Timothy M.},
  title = {Deeper, Broader and Artier Domain Generalization},
  booktitle = {ICCV}, year = {2017}
}""",
        places=("PACS", "pacs", "PACS.zip", "pacs.zip"),
        hub=("flwrlabs/pacs",),
        options={"image_size": 64, "test": 0.2},
        check=check_options,
        layouts=(
            Layout("folders DOMAIN/CLASS/image", tuple(f"*/{domain}/*/*" for domain in DOMAINS), folders),
            Layout("parquet with image, domain and label", (hub.TRAIN,), parquet),
        ),
        how="PACS.zip from the page above, or flwrlabs/pacs of Hugging Face",
        note="no test part is published for its use in federations: a fifth of every class of every domain is held "
        "out, always the same; image_size=None keeps 227 x 227",
    ),
)
