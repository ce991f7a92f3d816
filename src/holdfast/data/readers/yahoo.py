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
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from holdfast.data.readers import hub
from holdfast.data.readers.entry import Entry, File, Layout
from holdfast.data.readers.room import room
from holdfast.data.readers.tree import Tree, told
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

CLASSES = 10
OPTIONS = {"vocabulary": 32000, "length": 200}
FIRST = 2  # codes 0 and 1 are padding and unknown
COLUMNS = ("topic", "question_title", "question_content", "best_answer")
LONGEST = 1 << 20  # characters of a field; Python's default refuses some real answers
PUNCTUATION = {character: f" {character} " for character in "'.,()!?"} | {";": " ", ":": " "}
SPACED = str.maketrans(PUNCTUATION)


def tokens(text: str) -> list[str]:
    """Lower case; quotes and ; : dropped, other punctuation a token of its own; '<br />' is a space."""
    return text.lower().replace('"', "").replace("<br />", " ").translate(SPACED).split()


def read(tree: Tree, vocabulary: int, length: int) -> Dataset:
    """The CSV files."""
    return made([partial(rows, tree, tree.one(f"*/{part}.csv")) for part in ("train", "test")], vocabulary, length)


def parquet(tree: Tree, vocabulary: int, length: int) -> Dataset:
    """The tables on Hugging Face, topics from 0."""
    return made([partial(table, tree, pattern) for pattern in hub.NEEDS], vocabulary, length)


def made(sources: list[Callable[[], Iterator[tuple[int, str]]]], vocabulary: int, length: int) -> Dataset:
    """From functions that go over the labels and texts of a part; the training part is gone over twice."""
    counts: Counter[str] = Counter()
    labels: list[list[int]] = [[], []]
    for label, text in sources[0]():
        labels[0].append(label)
        counts.update(tokens(text))
    ranked = sorted(counts, key=lambda token: (-counts[token], token))[: vocabulary - FIRST]
    code = {token: i for i, token in enumerate(ranked, FIRST)}
    labels[1] = [label for label, _ in sources[1]()]
    x, test_x = (coded(source, code, len(held), length) for source, held in zip(sources, labels, strict=True))
    y, test_y = (np.array(held, np.int64) for held in labels)
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


def coded(source: Callable[[], Iterator[tuple[int, str]]], code: dict[str, int], many: int, length: int) -> np.ndarray:
    """[many, length] codes of the texts of a part."""
    found = room((many, length), np.int16 if FIRST + len(code) <= np.iinfo(np.int16).max else np.int32)
    for row, (_, text) in zip(found, source(), strict=True):
        held = [code.get(token, 1) for token in tokens(text)[:length]]
        row[: len(held)] = held
    return found


def rows(tree: Tree, name: str) -> Iterator[tuple[int, str]]:
    """Label from 0 and text of every record."""
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
    return int(row[0]) - 1, joined(row[1:])


def joined(texts: Sequence[str]) -> str:
    """Texts of several lines have '\\n' written out in them."""
    return " ".join(texts).replace("\\n", " ")


def table(tree: Tree, pattern: str) -> Iterator[tuple[int, str]]:
    for where, row in hub.records(tree, pattern, COLUMNS):
        topic, *texts = (row[name] for name in COLUMNS)
        if not isinstance(topic, int) or not 0 <= topic < CLASSES:
            raise Refused(f"{where}: has the topic {told(topic)}, which is none of 0 to {CLASSES - 1}")
        wrong = [text for text in texts if not isinstance(text, str)]
        if wrong:
            raise Refused(f"{where}: has {told(wrong[0])} where a text is expected")
        yield topic, joined(texts)


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
        layouts=(
            Layout("yahoo_answers_csv (train.csv, test.csv)", ("*/train.csv", "*/test.csv"), read),
            Layout("parquet with topic, question_title, question_content and best_answer", hub.NEEDS, parquet),
        ),
        files=(File("yahoo_answers_csv.tar.gz", md5="f3f9899b997a42beb24157e62e3eea8d"),),
        places=("yahoo_answers_csv", "yahoo_answers_csv.tar.gz", "YahooAnswers"),
        hub=("community-datasets/yahoo_answers_topics", "yahoo_answers_topics"),
        options=OPTIONS,
        check=check,
        how="the archive yahoo_answers_csv.tar.gz of Zhang, Zhao and LeCun; torchtext's YahooAnswers keeps it too",
        note="the paper states no tokens, vocabulary or length; these are ours (vocabulary=32000, length=200)",
    ),
)
