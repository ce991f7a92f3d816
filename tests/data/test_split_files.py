"""split.json: its hash, whole or not at all, and what is refused on reading."""

import hashlib
import json
import os
import struct

import numpy as np
import pytest

from holdfast.data.dealing import Samples
from holdfast.data.splits import Split, make
from holdfast.errors import Refused

LABELS = np.random.default_rng(0).integers(0, 10, 4003)


def made(name, **options):
    return make(name, options, Samples(LABELS, 10), 3, "text")


def test_hash_is_what_it_says():
    # Built here with struct: number of clients, sizes, indices, each eight bytes little-endian.
    dealt = Split("t", (np.array([5, 1]), np.array([7])), 0)
    assert dealt.hash == hashlib.sha256(struct.pack("<6q", 2, 2, 1, 5, 1, 7)).hexdigest()
    assert dealt.hash != Split("t", (np.array([5]), np.array([1, 7])), 0).hash


def test_save_and_load(tmp_path):
    path = tmp_path / "split.json"
    first = made("dirichlet", alpha=0.1, clients=12, rule="classwise", empty="allow")
    path.write_text("old")
    first.save(path)
    again = Split.load(path)
    assert (again.text, again.seed, again.hash) == (first.text, 3, first.hash)
    assert all(np.array_equal(a, b) for a, b in zip(first.clients, again.clients, strict=True))
    stored = json.loads(path.read_text())
    assert stored["samples"] == 4003 and stored["hash"] == first.hash
    assert os.listdir(tmp_path) == ["split.json"], "no draft may be left behind"


def test_own_test_rows_are_stored_and_hashed(tmp_path):
    # As above, then 0 for the test part (1 for the training part), number of lists, their sizes, their rows.
    clients, tests = (np.array([5, 1]), np.array([7])), (np.array([3]), np.array([], dtype=np.int64))
    own = Split("t", clients, 0, tests)
    assert own.hash == hashlib.sha256(struct.pack("<11q", 2, 2, 1, 5, 1, 7, 0, 2, 1, 0, 3)).hexdigest()
    held = Split("t", clients, 0, tests, "train")
    assert held.hash == hashlib.sha256(struct.pack("<11q", 2, 2, 1, 5, 1, 7, 1, 2, 1, 0, 3)).hexdigest()
    for made in (own, held):
        made.save(tmp_path / "split.json", np.array([[2], [1]]))
        again = Split.load(tmp_path / "split.json")
        assert (again.hash, again.tests_from) == (made.hash, made.tests_from)
        assert [rows.tolist() for rows in again.tests] == [[3], []]
    stored = json.loads((tmp_path / "split.json").read_text())
    assert stored["version"] == 2 and stored["counts"] == [[2], [1]] and stored["tests"] == [[3], []]


def test_files_of_the_first_version_still_load(tmp_path):
    # As written before there were tests; the hash is that of the struct in the first test.
    hash = hashlib.sha256(struct.pack("<6q", 2, 2, 1, 5, 1, 7)).hexdigest()
    path = tmp_path / "split.json"
    path.write_text(
        f'{{\n "text": "t",\n "seed": 0,\n "hash": "{hash}",\n "samples": 3,\n'
        ' "clients": [\n[5,1],\n[7]\n ],\n "counts": [\n[2],\n[1]\n ]\n}\n'
    )
    old = Split.load(path)
    assert old.hash == hash and [rows.tolist() for rows in old.clients] == [[5, 1], [7]] and len(old.tests) == 0


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "split.json"
    first = made("iid", clients=3)
    first.save(path)

    def fail(*_):
        raise OSError("disk full")

    for step in ("fsync", "replace"):  # the content is safe on the disk before it takes the name
        monkeypatch.setattr(os, step, fail)
        with pytest.raises(OSError, match="disk full"):
            made("iid", clients=4).save(path)
        monkeypatch.undo()
    assert os.listdir(tmp_path) == ["split.json"] and Split.load(path).hash == first.hash


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda s: s.replace('"clients"', '"klients"'), "no split of holdfast (clients"),
        (lambda s: s[: s.index("text") + 2], "Unterminated"),
        (lambda s: s.replace("[1,0]", "[0,1]"), "damaged (hash says"),
        (lambda s: s.replace("[1,0]", "[1]"), "damaged (samples says 3, the clients hold 2"),
        (lambda s: s.replace("[1,0]", "[1,0.5]"), "client 0 holds something else"),
        (lambda s: s.replace("[1,0]", "[1,-1]"), "client 0 holds something else"),
        (lambda s: s.replace('"version": 2', '"version": 3'), "version 3, and this Holdfast reads up to 2"),
        (lambda s: s.replace('"clients"', '"tests": [[1]], "clients"'), "tests is not one list of rows a client"),
        (lambda s: s.replace('"clients"', '"tests": [[1], [2]], "clients"'), "damaged (hash says"),
        (lambda s: s.replace('"clients"', '"tests_from": "x", "clients"'), "tests is not one list of rows a client"),
        (lambda s: "[]", "no JSON object"),
        (lambda s: "\x00\xff", "Expecting"),
    ],
)
def test_damaged_and_foreign_files_are_refused(tmp_path, damage, reason):
    path = tmp_path / "split.json"
    Split("t", (np.array([1, 0]), np.array([2])), 0).save(path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(Refused) as caught:
        Split.load(path)
    assert reason in str(caught.value) and str(path) in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(Refused, match="No such file"):
        Split.load(tmp_path / "none.json")
