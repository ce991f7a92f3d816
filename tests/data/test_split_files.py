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
        (lambda s: s[: len(s) // 2], "Unterminated"),
        (lambda s: s.replace("[1,0]", "[0,1]"), "damaged (hash says"),
        (lambda s: s.replace("[1,0]", "[1]"), "damaged (samples says 3, the clients hold 2"),
        (lambda s: s.replace("[1,0]", "[1,0.5]"), "client 0 holds something else"),
        (lambda s: s.replace("[1,0]", "[1,-1]"), "client 0 holds something else"),
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
