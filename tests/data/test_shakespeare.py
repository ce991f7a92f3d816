"""Shakespeare from LEAF's files and from speeches by role: windows, codes and the split in time, counted by hand."""

import json
import re

import numpy as np
import pytest
import torch
from loaded import digest, loaded, refused
from shared import needs_shared, texts

from holdfast.data.readers.shakespeare import ALPHABET


def roles_file(folder, roles):
    (folder / "shakespeare_roles.json").write_text(json.dumps(roles))
    return folder


def spoken(codes):
    return "".join(ALPHABET[c] for c in codes)


def slow(speeches, share=0.9):
    """LEAF's shake_utils.py and split_data.py with strings: (train, test) lists of (window, next)."""
    text = re.sub(r"   *", " ", "".join(s + "\n" for s in speeches).replace("\n", " "))
    pairs = [(text[i : i + 80], text[i + 80]) for i in range(len(text) - 80)]
    first = max(1, int(share * len(pairs))) if len(pairs) != 2 else 1
    train, test = pairs[:first], pairs[first + 79 :]
    return (train, test) if len(pairs) >= 2 and train and test else ([], [])


def test_the_alphabet_is_leafs():
    # models-data-metrics A3: newline, space, ! " & ' ( ) , - . 0-9 : ; > ? A-Z [ ] a-z }
    assert len(ALPHABET) == 80 and ALPHABET[:11] == "\n !\"&'(),-." and ALPHABET[11:25] == "0123456789:;>?"
    assert ALPHABET[25] == "A" and ALPHABET[51:54] == "[]a" and ALPHABET[79] == "}"


def test_windows_split_and_roles(tmp_path):
    long = ["To be,  or not\nto be: " * 50, "that is the question! " * 5]
    roles = {"hamlet|HAMLET": long, "hamlet|SHORT": ["x" * 100], "hamlet|MUTE": [], "lear|LEAR": ["Howl " * 200]}
    data = loaded("shakespeare", roles_file(tmp_path, roles))
    role = data.columns["role"]
    # 100 characters and a line end give 21 windows: 18 to train, none left after a gap of 79.
    assert role.names == ("hamlet|HAMLET", "lear|LEAR") and data.kind == "next" and data.codes == (80,)
    assert data.x.dtype == torch.uint8 and data.shape == (80,) and data.classes == 80
    for i, name in enumerate(role.names):
        train, test = slow(roles[name])
        for x, y, who, pairs in ((data.x, data.y, role.train, train), (data.test_x, data.test_y, role.test, test)):
            own = np.flatnonzero(who == i)
            assert [(spoken(x[j]), ALPHABET[y[j]]) for j in own] == pairs
    # "Howl " * 200 and the space at its end: 1001 characters less one of two spaces, so 920 windows; 828 + 79 + 13.
    assert int((role.train == 1).sum()) == 828 and int((role.test == 1).sum()) == 13


def test_the_gap_is_79_windows(tmp_path):
    text = "".join(ALPHABET[2 + (i * i // 7) % 70] for i in range(1200))
    data = loaded("shakespeare", roles_file(tmp_path, {"a|B": [text]}))
    # 1201 characters with the line end, 1121 windows, 1008 to train: the last covers 1007 to 1086, so the first test
    # window, number 1008 + 79, begins at 1087; 1121 - 1008 - 79 = 34 of them.
    assert (len(data.x), len(data.test_x)) == (1008, 34)
    assert spoken(data.x[-1]) == text[1007:1087] and spoken(data.test_x[0]) == text[1087:1167]
    assert ALPHABET[data.test_y[0]] == text[1167] and ALPHABET[data.test_y[-1]] == " "


def test_unknown_characters_have_the_last_code(tmp_path):
    data = loaded("shakespeare", roles_file(tmp_path, {"a|B": ["é$\U0001f600" + "ab" * 600]}))
    assert data.x[0, :5].tolist() == [79, 79, 79, ALPHABET.index("a"), ALPHABET.index("b")]


def leaf_file(path, users):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {name: {"x": [x for x, _ in pairs], "y": [y for _, y in pairs]} for name, pairs in users.items()}
    many = [len(pairs) + 79 for pairs in users.values()]  # too many, as LEAF's split_data.py writes for tests
    path.write_text(json.dumps({"users": list(users), "num_samples": many, "user_data": data}))


def test_leafs_files_give_the_same_as_the_speeches(tmp_path):
    roles = {"A_ROLE": ["How now, my lord? " * 70], "B_ROLE": ["Nay; " * 300]}
    from_roles = loaded("shakespeare", roles_file(tmp_path, roles))
    parts = {name: slow(speeches) for name, speeches in roles.items()}
    folder = tmp_path / "data"
    leaf_file(folder / "train" / "all_data_train_9.json", {name: train for name, (train, _) in parts.items()})
    leaf_file(folder / "test" / "all_data_test_9.json", {name: test for name, (_, test) in parts.items()})
    whole = {}
    for name, speeches in roles.items():
        text = re.sub(r"   *", " ", "".join(s + "\n" for s in speeches).replace("\n", " "))
        whole[name] = [(text[i : i + 80], text[i + 80]) for i in range(len(text) - 80)]
    leaf_file(tmp_path / "whole" / "all_data" / "all_data.json", whole)
    for path in (folder, tmp_path / "whole"):
        data = loaded("shakespeare", path)
        for part in ("x", "y", "test_x", "test_y"):
            assert torch.equal(getattr(data, part), getattr(from_roles, part))
        assert np.array_equal(data.columns["role"].test, from_roles.columns["role"].test)


@needs_shared
def test_the_real_roles(tmp_path):
    roles = texts("shakespeare_roles")
    data = loaded("shakespeare", roles_file(tmp_path, roles))
    role = data.columns["role"]
    # Counted from the texts with strings: windows n = length - 80, int(.9 n) to train, n - that - 79 to test.
    lengths = {r: len(re.sub(r"   *", " ", "".join(s + "\n" for s in v).replace("\n", " "))) for r, v in roles.items()}
    windows = {r: n - 80 for r, n in lengths.items() if n > 80}
    kept = {r: n for r, n in windows.items() if n - max(1, int(0.9 * n)) - 79 > 0}
    assert role.names == tuple(kept)
    assert len(data.x) == sum(max(1, int(0.9 * n)) for n in kept.values())
    assert len(data.test_x) == sum(n - max(1, int(0.9 * n)) - 79 for n in kept.values())
    for i in (0, len(kept) // 2, len(kept) - 1):
        train, _ = slow(roles[role.names[i]])
        own = np.flatnonzero(role.train == i)
        assert [(spoken(data.x[j]), ALPHABET[data.y[j]]) for j in own[:50]] == train[:50]
    # The counts above, and the bytes as the reader gave them on 2026-11-19.
    assert (len(data.x), len(data.test_x), len(role.names)) == (3666419, 353753, 683)
    assert (digest(data.test_x), digest(data.y)) == ("4812449c61fdc118", "70729361dd6d27cd")


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ('{"a|B": ["text', "shakespeare_roles.json: is no whole JSON file"),
        ("[1]", "expected were the speeches of every role"),
        ('{"a|B": "text"}', "role 'a|B' is no list of texts"),
        ('{"a|B": [3]}', "role 'a|B' is no list of texts"),
        ('{"a|B": ["short"]}', "no role has enough text"),
    ],
)
def test_what_is_wrong_in_the_speeches_is_told(tmp_path, held, said):
    (tmp_path / "shakespeare_roles.json").write_text(held)
    assert said in refused("shakespeare", tmp_path)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("a" * 79, "b")], "user R: 'aaaa"),
        ([("a" * 80, "bc")], "'bc' in y is not one character (1 such)"),
        ([([0.5] * 784, 3)], "in x is not a window of 80 characters (1 such)"),  # FEMNIST's files
    ],
)
def test_what_is_wrong_in_leafs_files_is_told(tmp_path, pairs, said):
    leaf_file(tmp_path / "train" / "a.json", {"R": pairs})
    leaf_file(tmp_path / "test" / "a.json", {"R": pairs})
    assert said in refused("shakespeare", tmp_path)
    assert "share=0.8 cannot be chosen" in refused("shakespeare", tmp_path, share=0.8)


def test_flowers_parquet_gives_the_same_as_the_speeches(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    roles = {"A_ROLE": ["How now, my lord? " * 70], "B_ROLE": ["Nay; " * 300]}
    expected = loaded("shakespeare", roles_file(tmp_path, roles))
    rows = []
    for name, speeches in roles.items():
        text = "".join(speeches)  # the line end after the last space would be a second one
        rows += [(name, text[i : i + 80], text[i + 80]) for i in range(len(text) - 80)]
    table = {key: [row[i] for row in rows] for i, key in enumerate(("character_id", "x", "y"))}
    folder = tmp_path / "hub" / "data"
    folder.mkdir(parents=True)
    half = len(rows) // 2 + 7  # a role's rows may go over two files
    for i, part in enumerate((slice(None, half), slice(half, None))):
        parquet.write_table(arrow.table({k: v[part] for k, v in table.items()}), folder / f"train-{i}.parquet")
    data = loaded("shakespeare", tmp_path / "hub")
    assert torch.equal(data.x, expected.x) and torch.equal(data.test_x, expected.test_x)
    assert torch.equal(data.test_y, expected.test_y) and data.columns["role"].names == ("A_ROLE", "B_ROLE")
