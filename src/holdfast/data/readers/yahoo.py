"""Yahoo! Answers topics as token codes: the CSV archive of Zhang, Zhao and LeCun (2015), title, question and answer.

SpecGradFilter does not state its text pipeline. Ours [I]: torchtext's 'basic_english' tokens, written out below, of
title, question and answer with a space between; the most frequent tokens of the training set, equally frequent ones in
alphabetical order; codes 0 = padding, 1 = unknown; cut after, or filled up at the end to, 200 tokens. `vocabulary`
counts both codes (32,000 as PFLlib's max_tokens). Memory: 1,400,000 x 200 x 2 bytes = 560 MB as int16, memory-mapped;
reading takes two passes over the text, some minutes.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.room import room
from holdfast.data.readers.tree import Tree, told
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

CLASSES = 10
OPTIONS = {"vocabulary": 32000, "length": 200}
FIRST = 2  # codes 0 and 1 are padding and unknown
LONGEST = 1 << 20  # characters of a field; Python's default refuses some real answers
PUNCTUATION = {character: f" {character} " for character in "'.,()!?"} | {";": " ", ":": " "}
SPACED = str.maketrans(PUNCTUATION)


def tokens(text: str) -> list[str]:
    """Lower case; quotes and ; : dropped, other punctuation a token of its own; '<br />' is a space."""
    return text.lower().replace('"', "").replace("<br />", " ").translate(SPACED).split()


def read(tree: Tree, vocabulary: int, length: int) -> Dataset:
    check(vocabulary, length)
    names = [tree.one(f"*/{part}.csv") for part in ("train", "test")]
    counts: Counter[str] = Counter()
    labels: list[list[int]] = [[], []]
    for label, text in rows(tree, names[0]):
        labels[0].append(label)
        counts.update(tokens(text))
    ranked = sorted(counts, key=lambda token: (-counts[token], token))[: vocabulary - FIRST]
    code = {token: i for i, token in enumerate(ranked, FIRST)}
    labels[1] = [label for label, _ in rows(tree, names[1])]
    x, test_x = (coded(tree, name, code, len(held), length) for name, held in zip(names, labels, strict=True))
    y, test_y = (np.array(held, np.int64) - 1 for held in labels)
    return Dataset.of(x, y, test_x, test_y, classes=CLASSES, name="yahoo_answers", codes=(FIRST + len(code),))


def check(vocabulary: object, length: object) -> None:
    least = {"vocabulary": (vocabulary, FIRST + 1), "length": (length, 1)}
    wrong = [
        f"{name}={value!r} is no whole number from {low} on"
        for name, (value, low) in least.items()
        if not isinstance(value, int) or isinstance(value, bool) or value < low
    ]
    if wrong:
        raise Refused(*wrong)


def coded(tree: Tree, name: str, code: dict[str, int], many: int, length: int) -> np.ndarray:
    """[many, length] codes of the texts of a file."""
    found = room((many, length), np.int16 if FIRST + len(code) <= np.iinfo(np.int16).max else np.int32)
    for row, (_, text) in zip(found, rows(tree, name), strict=True):
        held = [code.get(token, 1) for token in tokens(text)[:length]]
        row[: len(held)] = held
    return found


def rows(tree: Tree, name: str) -> Iterator[tuple[int, str]]:
    """Label 1 to 10 and text of every record; texts of several lines have '\\n' written out in them."""
    where = tree.where(name)
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    with tree.open(name) as stream:
        number = 0
        try:
            for number, row in enumerate(csv.reader(io.TextIOWrapper(stream, "utf-8", newline=""), strict=True), 1):
                yield record(where, number, row)
        except UnicodeDecodeError as error:
            raise Refused(f"{where}: is no utf-8 text ({error.reason} after record {number})") from None
        except csv.Error as error:
            raise Refused(f"{where}: is cut short or no CSV after record {number} ({error}); get it again") from None
        if not number:
            raise Refused(f"{where}: is empty")


def record(where: str, number: int, row: list[str]) -> tuple[int, str]:
    if len(row) != 4:
        raise Refused(f"{where}: record {number} has {len(row)} fields; expected were class, title, question, answer")
    if not re.fullmatch("[1-9]|10", row[0]):
        raise Refused(f"{where}: record {number} has the class {told(row[0])}, which is none of 1 to {CLASSES}")
    return int(row[0]), " ".join(row[1:]).replace("\\n", " ")


ENTRIES = (
    Entry(
        name="yahoo_answers",
        title="questions and answers by topic, as token codes",
        samples="1,400,000 + 60,000 texts of 200 tokens, 10 topics",
        licence="Yahoo! Webscope's: research use",
        home="https://github.com/zhangxiangxiao/Crepe",
        cite="""@inproceedings{zhang2015character,
  title = {Character-level Convolutional Networks for Text Classification},
  author = {Zhang, Xiang and Zhao, Junbo and LeCun, Yann},
  booktitle = {Advances in Neural Information Processing Systems}, volume = {28}, year = {2015}}""",
        layouts=(Layout("yahoo_answers_csv (train.csv, test.csv)", ("*/train.csv", "*/test.csv"), read),),
        files=(File("yahoo_answers_csv.tar.gz", md5="f3f9899b997a42beb24157e62e3eea8d"),),
        places=("yahoo_answers_csv", "yahoo_answers_csv.tar.gz", "YahooAnswers"),
        options=OPTIONS,
        how="the archive yahoo_answers_csv.tar.gz of Zhang, Zhao and LeCun; torchtext's YahooAnswers keeps it too",
        note="the paper states no tokens, vocabulary or length; these are ours (vocabulary=32000, length=200)",
    ),
)
