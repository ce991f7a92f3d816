"""`holdfast data`: what it prints, its exit codes, and that a run finds what was imported."""

import hashlib
import importlib
import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

import holdfast

DATA = str(Path(__file__).parents[1] / "data")
if DATA not in sys.path:
    sys.path.append(DATA)
originals = importlib.import_module("originals")  # of the tests of the readers
pixels = originals.pixels


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    """An empty data folder, and no cache of this machine's user."""
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "store"


@pytest.fixture
def cifar(tmp_path):
    x, y = pixels(40, 3, 32, 32), np.arange(40) % 10
    return originals.cifar10(tmp_path / "cifar-10-batches-py", x, y, x[:10], y[:10])


def test_list_tells_each_set_with_its_licence_and_the_way_to_it(hold, data_folder):
    ended = hold("data list")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == f"data sets; the data folder is {data_folder}"
    at = lines.index("  cifar10          CIFAR-10: small photographs of ten kinds of things")
    assert lines[at + 1].strip() == "50,000 + 10,000 of 3 x 32 x 32, 10 classes; licence: none stated"
    assert lines[at + 2].strip() == "not here; holdfast data import cifar10 --download"
    rows = {row["name"]: row for row in hold("data list --json").rows}
    assert rows["digits"]["state"] == "ships" and rows["dermamnist"]["licence"] == "CC BY-NC 4.0"
    assert rows["pacs"]["options"] == {"image_size": 64, "test": 0.2} and rows["pacs"]["cite"].startswith("@")
    assert not data_folder.exists(), "listing writes nothing"
    for name in ("femnist", "mnist_writers"):  # which also say how to get another form
        at = next(k for k, line in enumerate(lines) if line.startswith(f"  {name} "))
        assert lines[at + 2].strip() == f"not here; holdfast data import {name} --download"
    assert {"digits", "synthetic", "folder", "npz"} <= set(rows)


def test_checksums_and_citations_are_told(hold):
    rows = {row["name"]: row for row in hold("data list --json").rows}
    # torchvision/datasets/cifar.py has this md5.
    first = {"name": "cifar-10-python.tar.gz", "md5": "c58f30108f718f92721af3b95e74349a", "sha256": "",
             "size": 170498071, "url": "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"}  # fmt: skip
    assert rows["cifar10"]["files"][0] == first and len(rows["cifar10"]["files"]) == 8
    listed = hold("data list").out
    assert "checksums: md5 c58f30108f718f92721af3b95e74349a  cifar-10-python.tar.gz (and 7 more: data show" in listed
    assert sum(line.strip().startswith("checksums: ") for line in listed.splitlines()) == len(rows) - 3
    shown = hold("data show cifar10").out
    assert all(f"md5 {file['md5']}  {file['name']}" in shown for file in rows["cifar10"]["files"])
    assert "checksums  none published\n" in hold("data show pacs").out
    assert "none published  HAM10000_images_part_1.zip" in hold("data show ham10000").out
    assert "sha256 fe1ed5a502cea3a952eb105920bff8cffb32836b5173cb18a57a32c3606f3ea0" in hold("data show femnist").out
    (digits,) = rows["digits"]["files"]
    file = Path(holdfast.__file__ or "").parent / "data" / digits["name"]
    assert digits["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest() and digits["sha256"] in listed
    assert "@misc{alpaydin1998" in hold("data show digits").out
    assert all(row["cite"].startswith("@") for name, row in rows.items() if name not in ("folder", "npz"))


def test_what_needs_no_copy_is_shown(hold, tmp_path):
    shown = hold("data show synthetic(clients=1000)")
    assert shown.code == 0 and "clients=1000" in shown.out and "50,000 to train and 2,000 to test" in shown.out
    assert "a client's samples are made in every round" in shown.out
    for name in ("npz", "folder"):
        shown = hold(f"data show {name}")
        assert shown.code == 0 and f"{name}(path='...')" in shown.out and "to train and" not in shown.out
    np.savez(tmp_path / "a.npz", x=np.eye(6), y=np.arange(6), test_x=np.eye(6), test_y=np.arange(6), site=np.arange(6))
    shown = hold(["data", "show", f"npz(path='{tmp_path}/a.npz')"])
    assert "6 to train and 6 to test" in shown.out and "site (6)" in shown.out
    assert hold("data show npz(pth=3)").code == 2


def test_the_memory_plan_tells_of_the_normalised_copy(hold):
    (row,) = hold("data show digits --json").rows
    assert row["normalized_bytes"] == 1437 * 64 * 4
    part = "a run without augmentation adds 0.4 MB, the training samples normalised once in float32"
    assert part in hold("data show digits").out
    (row,) = hold("data show synthetic --json").rows
    assert row["normalized_bytes"] == 0


def test_import_show_verify_and_run(hold, cifar, data_folder):
    ended = hold(f"data import {cifar} --unchecked")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0].startswith(
        "cifar10: 40 to train and 10 to test of 3 x 32 x 32, 10 classes; 0.2 MB"
    )
    shown = hold("data show cifar10")
    assert shown.code == 0 and "a class    4 to train, 1 to test" in shown.out
    assert (
        "memory     0.2 MB, all of it held; as much on a GPU" in shown.out and "@techreport{krizhevsky2009" in shown.out
    )
    (row,) = hold("data show cifar10 --json").rows
    # 50 images of 3,072 bytes and 50 labels of 8; files have headers of 128 bytes besides.
    assert row["memory_bytes"] == row["device_bytes"] == 50 * (3072 + 8) and row["disk_bytes"] == 50 * 3080 + 4 * 128
    assert row["train_counts"] == [4] * 10 and row["state"] == "imported" and not row["mapped"]
    assert hold("data verify").out == "cifar10: as imported\n"
    assert f"imported: {data_folder / 'sets' / 'cifar10'}" in hold("data list").out
    ran = hold("run --data cifar10 --split iid(clients=4) --model logreg --rounds 1 --cohort 2 --epochs 1 --out r")
    assert ran.code == 0, ran.err


def test_damage_is_told_by_verify(hold, cifar, data_folder):
    hold(f"data import {cifar} --name cifar10 --unchecked")
    path = data_folder / "sets" / "cifar10" / "y.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    ended = hold("data verify cifar10")
    assert ended.code == 1 and f"{path}: sha256 expected" in ended.out
    assert ended.err == "holdfast: cifar10: not as imported\n"
    (row,) = hold("data verify --json").rows
    assert len(row["problems"]) == 1
    path.write_bytes(b"")
    assert hold("data verify").code == 1
    ended = hold("run --data cifar10 --split iid(clients=4) --model logreg --rounds 1 --out r")
    assert ended.code == 2 and "Import the set again with --replace" in ended.err
    assert hold(f"data import {cifar} --unchecked --replace").code == 0
    assert hold("data verify").code == 0


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("data import nowhere.zip", "nowhere.zip: there is no such file or folder"),
        ("data import cifar10", "to download it: holdfast data import cifar10 --download"),
        ("data import . --name cifar1", "unknown data set 'cifar1': did you mean cifar10"),
        ("data import . --name pacs(size=3)", "pacs has no option 'size': known: image_size, test"),
        ("data import . --name pacs(image_size=0.5)", "image_size=0.5 must be a whole number"),
        ("data import . --name cifar10", "is no copy of cifar10 that is known: python pickles"),
        ("data import . --url http://x/", "--url names a mirror for --download; give both"),
        ("data import pacs --download", "pacs is not downloaded by holdfast: PACS.zip"),
        ("data import cifar10 --download --name cifar10", "stands beside --download"),
        ("data show cifar1", "did you mean cifar10"),
        ("data verify cifar10", "cifar10 is not imported in"),
        ("data verify pacs9", "unknown data set 'pacs9'"),
        ("data imort x", "did you mean import?"),
        ("data list --jsn", "did you mean --json?"),
        ("data", "the following arguments are required: TASK"),
        ("run --data cifar10 --split iid --model logreg --rounds 1 --out r", "holdfast data import cifar10 --download"),
    ],
)
def test_bad_input_is_told_and_nothing_is_written(hold, data_folder, line, part):
    ended = hold(line)
    assert ended.code == 2 and part in ended.err and ended.out == ""
    assert "Traceback" not in ended.err and not data_folder.exists()


def test_wrong_checksums_are_bad_input(hold, cifar, data_folder):
    ended = hold(f"data import {cifar}")
    assert ended.code == 2 and ended.err.startswith("holdfast: 6 problems\n")
    assert "data_batch_1: expected md5 c99cafc152244af753f735de768cd75f, found md5 " in ended.err
    assert ended.err.splitlines()[-1].endswith("holdfast data import PATH --name cifar10 --unchecked")
    assert not data_folder.exists()


def test_no_network_fails_in_words(hold, data_folder):
    ended = hold("data import mnist --download --url http://127.0.0.1:9/")
    assert ended.code == 1 and "no connection" in ended.err and "Traceback" not in ended.err
    assert not data_folder.exists(), "no empty folder is left"


def test_a_full_disk_fails_in_words_and_leaves_nothing(shell, cifar, data_folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # x.npy has 40 * 3,072 bytes

    ended = shell(f"data import {cifar} --unchecked --data-dir {data_folder}", preexec_fn=limit)
    assert ended.code == 1 and ended.out == ""
    assert ended.err.startswith(
        f"holdfast: no space for {data_folder / 'sets' / 'cifar10'}: it needs 0.2 MB (File too large)"
    )
    assert not data_folder.exists()


def test_a_data_folder_that_cannot_be_written_fails_in_words(hold, cifar, tmp_path):
    (tmp_path / "file").write_text("")
    ended = hold(f"data import {cifar} --unchecked --data-dir {tmp_path / 'file' / 'x'}")
    assert ended.code == 1 and "Not a directory" in ended.err and "Traceback" not in ended.err


def test_options_have_a_copy_of_their_own(hold, tmp_path, data_folder):
    images = {f"{d}/dog/{k}.png": originals.png(pixels(1, 3, 9, 9, seed=k)[0])
              for d in ("art_painting", "cartoon", "photo", "sketch") for k in range(5)}  # fmt: skip
    folder = originals.put(tmp_path / "p", images)
    assert hold(["data", "import", str(folder), "--name", "pacs(image_size=8)"]).code == 0
    assert os.listdir(data_folder / "sets") == ["pacs,image_size=8"]
    assert "pacs,image_size=8" in hold("data show pacs").out
    (row,) = hold(["data", "show", "pacs(image_size=8)", "--json"]).rows
    assert (row["shape"], row["columns"], row["train"], row["test"]) == ([3, 8, 8], {"domain": 4}, 16, 4)
    assert "as imported" in hold("data verify pacs").out
    (row,) = hold(["data", "show", "pacs(image_size=16)", "--json"]).rows
    other = str(data_folder / "sets" / "pacs,image_size=8")
    assert (row["state"], row["paths"], row["others"]) == ("missing", [], [other])
    assert row["get"][0] == 'holdfast data import PATH --name "pacs(image_size=16)"'
    shown = hold(["data", "show", "pacs(image_size=16)"]).out
    assert f"with other options: {other}" in shown and "imported: " not in shown


def test_the_shipped_digits_are_shown(hold):
    (row,) = hold("data show digits --json").rows
    assert (row["train"], row["test"], row["shape"], row["classes"]) == (1437, 360, [1, 8, 8], 10)
    assert "1,437 to train and 360 to test" in hold("data show digits").out


@pytest.mark.parametrize("task", ["list", "show", "import", "verify"])
def test_every_task_has_help_with_an_example(hold, task):
    ended = hold(f"data {task} --help")
    assert ended.code == 0 and f"example:\n  holdfast data {task}" in ended.out and "--json" in ended.out


def test_an_import_is_told_as_json(hold, cifar, data_folder):
    ended = hold(f"data import {cifar} --unchecked --json")
    (row,) = [json.loads(line) for line in ended.out.splitlines()]
    assert row["folder"] == str(data_folder / "sets" / "cifar10") and row["samples"] == [40, 10]
    assert set(row["files"]) == {"x.npy", "y.npy", "test_x.npy", "test_y.npy"}
