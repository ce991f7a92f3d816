"""Yahoo! Answers from a CSV archive in its layout made here: tokens, vocabulary, codes, and what is refused."""

import csv
import io
import re
import tarfile

import numpy as np
import pytest
import torch
from loaded import loaded, refused

from holdfast.data.readers.yahoo import tokens

# As torchtext's basic_english normalises: each pattern replaced in turn, then cut at white space.
PATTERNS = [("'", " '  "), ('"', ""), (r"\.", " . "), (r"<br \/>", " "), (",", " , "), (r"\(", " ( "), (r"\)", " ) "),
            ("!", " ! "), (r"\?", " ? "), (";", " "), (":", " "), (r"\s+", " ")]  # fmt: skip


def by_patterns(text):
    text = text.lower()
    for pattern, replacement in PATTERNS:
        text = re.sub(pattern, replacement, text)
    return text.split()


def csv_text(records):
    """Every field in double quotes, those inside doubled: the archive's readme."""
    held = io.StringIO()
    csv.writer(held, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(records)
    return held.getvalue()


TRAIN = [
    (5, "why doesn't an optical mouse work?", "", 'It does; "mostly" (I think).'),
    (10, "b b b a", "a\\nb", "c, C: c"),
    (1, "a", "", ""),
]
TEST = [(10, "a zebra b", "", "c")]


def written(folder, train=TRAIN, test=TEST):
    folder.mkdir(exist_ok=True)
    for name, records in (("train", train), ("test", test)):
        text = records if isinstance(records, str) else csv_text(records)
        (folder / f"{name}.csv").write_bytes(text.encode())
    return folder


def test_tokens_are_basic_englishs():
    known = tokens("Don't stop; \"go\" (now): it's 3.5, O.K.?<br />Ja!")
    assert " ".join(known) == "don ' t stop go ( now ) it ' s 3 . 5 , o . k . ? ja !"
    rng = np.random.default_rng(0)
    letters = [*"aBc é0'\".,()!?;:\t\n<>/", "<br />", "<br", "/>", " "]
    for _ in range(300):
        text = "".join(rng.choice(letters, size=40))
        assert tokens(text) == by_patterns(text), text


def test_vocabulary_codes_and_labels(tmp_path):
    data = loaded("yahoo_answers", written(tmp_path), vocabulary=5, length=6)
    # Counts over title, question, answer: b 4 (the "\n" of a\nb is a space), a 3, c 3; a before c: 2 = b, 3 = a, 4 = c.
    assert data.codes == (5,) and data.classes == 10 and data.x.dtype == torch.int16
    assert data.y.tolist() == [4, 9, 0] and data.test_y.tolist() == [9]
    assert data.x.tolist() == [[1, 1, 1, 1, 1, 1], [2, 2, 2, 3, 3, 2], [3, 0, 0, 0, 0, 0]]
    assert data.test_x.tolist() == [[3, 1, 2, 4, 0, 0]]


def test_the_defaults(tmp_path):
    data = loaded("yahoo_answers", written(tmp_path))
    words = words_of(TRAIN)
    assert data.shape == (200,) and data.codes == (2 + len(words),)
    assert int((data.x[0] > 0).sum()) == len(by_patterns(" ".join(TRAIN[0][1:])))


def words_of(records):
    return {token for _, *texts in records for token in by_patterns(" ".join(texts).replace("\\n", " "))}


def test_the_archive_itself(tmp_path):
    folder = written(tmp_path / "yahoo_answers_csv")
    with tarfile.open(tmp_path / "yahoo_answers_csv.tar.gz", "w:gz") as archive:
        archive.add(folder, "yahoo_answers_csv")
    packed = loaded("yahoo_answers", tmp_path / "yahoo_answers_csv.tar.gz")
    assert torch.equal(packed.x, loaded("yahoo_answers", folder).x)


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ("", "train.csv: is empty"),
        (csv_text(TRAIN)[:-2], "train.csv: is cut short or no CSV after record 2"),
        (csv_text([(5, "a", "b")]), "train.csv: record 1 has 3 fields; expected were class, title, question, answer"),
        (csv_text([*TRAIN, (11, "a", "b", "c")]), "train.csv: record 4 has the class '11', which is none of 1 to 10"),
        (csv_text([(0, "a", "b", "c")]), "has the class '0'"),
        (csv_text([("topic", "a", "b", "c")]), "has the class 'topic'"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, train, said):
    assert said in refused("yahoo_answers", written(tmp_path, train))


def test_what_else_is_wrong_is_told(tmp_path):
    folder = written(tmp_path)
    message = refused("yahoo_answers", folder, vocabulary=2, length=0)
    assert "vocabulary=2 is no whole number from 3 on" in message and "length=0 is no whole number from 1 on" in message
    (folder / "test.csv").write_bytes(b'"1","\xff","",""\n')
    assert "test.csv: is no utf-8 text" in refused("yahoo_answers", folder)


def test_the_parquet_of_the_hub_gives_the_same(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    names = ("topic", "question_title", "question_content", "best_answer")

    def write(train):
        (tmp_path / "hub").mkdir(exist_ok=True)
        for part, records in (("train", train), ("test", TEST)):
            rows = [(topic - 1, *texts) for topic, *texts in records]
            table = {"id": list(range(len(rows))), **{k: [row[i] for row in rows] for i, k in enumerate(names)}}
            parquet.write_table(arrow.table(table), tmp_path / "hub" / f"{part}-00000-of-00001.parquet")

    write(TRAIN)
    expected, data = loaded("yahoo_answers", written(tmp_path / "csv")), loaded("yahoo_answers", tmp_path / "hub")
    for part in ("x", "y", "test_x", "test_y"):
        assert torch.equal(getattr(data, part), getattr(expected, part))
    write([*TRAIN, (11, "a", "b", "c")])
    assert "train-00000-of-00001.parquet row 3: has the topic 10, which is none of 0 to 9" in refused(
        "yahoo_answers", tmp_path / "hub"
    )
    write([*TRAIN, (3, "a", None, "c")])
    assert "row 3: has None where a text is expected" in refused("yahoo_answers", tmp_path / "hub")
