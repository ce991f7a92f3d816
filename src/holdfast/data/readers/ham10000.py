"""HAM10000: seven classes of skin lesions from four sources."""

from __future__ import annotations

import csv
import io

import numpy as np

from holdfast.data.columns import Column
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.pictures import check_options, held_out, is_picture, pictures
from holdfast.data.readers.tree import Tree
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

CLASSES = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")
SOURCES = ("rosendahl", "vidir_modern", "vidir_molemax", "vienna_dias")
FIELDS = ("lesion_id", "image_id", "dx", "dataset")
METADATA = "*/HAM10000_metadata*"


def folders(tree: Tree, image_size: int | None = 64, test: float = 0.2) -> Dataset:
    """Columns 'domain' (the source) and 'lesion'; all images of one lesion are on the same side of the split."""
    rows = metadata(tree)
    files = {name.rsplit("/", 1)[-1].rsplit(".", 1)[0]: name for name in tree.names if is_picture(name)}
    missing = [row["image_id"] for row in rows if row["image_id"] not in files]
    if missing:
        raise Refused(
            f"{tree.path}: {len(missing)} images of the metadata are not there, the first is {missing[0]}.jpg; both "
            "HAM10000_images_part_1 and part_2 are needed"
        )
    x = pictures(tree, [files[row["image_id"]] for row in rows], image_size)
    labels = np.asarray([CLASSES.index(row["dx"]) for row in rows], np.int64)
    domains = np.asarray([SOURCES.index(row["dataset"]) for row in rows], np.int64)
    lesions, lesion = np.unique([row["lesion_id"] for row in rows], return_inverse=True)
    held = lesion_test(lesion, labels, domains, test)
    columns = {
        "domain": Column(SOURCES, domains[~held], domains[held]),
        "lesion": Column(tuple(str(name) for name in lesions), lesion[~held], lesion[held]),
    }
    arrays = x[~held], labels[~held], x[held], labels[held]
    return Dataset.of(*arrays, classes=len(CLASSES), name="ham10000", columns=columns)


def lesion_test(lesion: np.ndarray, labels: np.ndarray, domains: np.ndarray, share: float) -> np.ndarray:
    """Of the lesions of every source and class, a share is for testing; [n images] bool."""
    _, first = np.unique(lesion, return_index=True)  # a lesion has one diagnosis and one source
    chosen = held_out(list(zip(domains[first].tolist(), labels[first].tolist(), strict=True)), share)
    return chosen[lesion]


def metadata(tree: Tree) -> list[dict[str, str]]:
    """The rows of the table, parted by commas or tabs."""
    name = tree.one(METADATA)
    text = tree.text(name, "utf-8-sig")
    head = text.split("\n", 1)[0]
    reader = csv.DictReader(io.StringIO(text), delimiter="\t" if "\t" in head else ",")
    missing = [field for field in FIELDS if field not in (reader.fieldnames or ())]
    if missing:
        more = "; Kaggle's copy has no 'dataset': take the one of Harvard Dataverse" if "dataset" in missing else ""
        raise Refused(f"{tree.where(name)}: has no field {', '.join(missing)}{more}")
    rows = list(reader)
    problems = [
        f"{tree.where(name)} line {number}: {field} is {row[field]!r}, none of {', '.join(known)}"
        for number, row in enumerate(rows, 2)
        for field, known in (("dx", CLASSES), ("dataset", SOURCES))
        if row[field] not in known
    ]
    if problems or not rows:
        raise Refused(*(problems[:5] or [f"{tree.where(name)}: has no rows"]))
    return rows


ENTRIES = (
    Entry(
        name="ham10000",
        title="HAM10000: skin lesions from four sources (columns 'domain' and 'lesion')",
        samples="10,015 in all (vidir_molemax 3,954, vidir_modern 3,363, rosendahl 2,259, vienna_dias 439) of "
        "3 x 450 x 600, 7 classes",
        licence="CC BY-NC 4.0",
        home="https://doi.org/10.7910/DVN/DBW86T",
        cite="""\
@article{tschandl2018,
  author = {Tschandl, Philipp and Rosendahl, Cliff and Kittler, Harald},
  title = {The {HAM10000} dataset, a large collection of multi-source dermatoscopic images of common pigmented skin lesions},
  journal = {Scientific Data}, volume = {5}, pages = {180161}, year = {2018}
}""",  # noqa: E501
        files=(File("HAM10000_images_part_1.zip"), File("HAM10000_images_part_2.zip")),
        places=("HAM10000", "ham10000"),
        options={"image_size": 64, "test": 0.2},
        check=check_options,
        layouts=(Layout("HAM10000_metadata and folders or zips of ISIC_*.jpg", (METADATA, "*/ISIC_*.jpg"), folders),),
        how="HAM10000_metadata and the two HAM10000_images_part zips from the page above, in one folder",
        note="no test part is published with sources: a fifth of the lesions of every class and source is held out, "
        "always the same; images are resized to a square",
    ),
)
