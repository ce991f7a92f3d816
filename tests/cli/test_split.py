"""What is told, kept and drawn of a split: before a run, in its folder and page, and without a run."""

import json
import re
import xml.etree.ElementTree as Tree
from pathlib import Path

import numpy as np
import pytest

from holdfast.data import sets
from holdfast.data.described import described
from holdfast.data.splits import Split
from holdfast.data.told import KEYS, lines

RUN = "run --model logreg --cohort 4 --rounds 1 --steps 1 --threads 1"
SPLIT = "dirichlet(alpha=0.3, clients=12, rule='classwise')"
MADE = "--data 'synthetic(clients=1000, samples=7)'"


def test_a_run_tells_its_split_and_keeps_the_measures(hold):
    done = hold([*RUN.split(), "--split", SPLIT, "--out", "a", "--json"])
    assert done.code == 0, done.err
    kept = json.loads(Path("a/split.json").read_text())
    data, split = sets.load("digits", {}), Split.load("a/split.json")
    # By loops over the rows: shares of classes, their spread about the mean of the clients (data/measures.py).
    shares = np.array([[np.mean(data.y.numpy()[rows] == c) for c in range(10)] for rows in split.clients])
    assert kept["measures"]["heterogeneity"] == pytest.approx(((shares - shares.mean(0)) ** 2).mean())
    sizes = [len(rows) for rows in split.clients]
    assert (kept["measures"]["size_min"], kept["measures"]["size_max"]) == (min(sizes), max(sizes))
    assert kept["measures"].keys() == KEYS and done.rows[-1]["split"] == kept["measures"]
    told = f"split {SPLIT}: 12 clients with {min(sizes):,} to {max(sizes):,} samples (mean {np.mean(sizes):.1f}); "
    assert told in done.err and f"heterogeneity H {kept['measures']['heterogeneity']:.4f}" in done.err
    assert hold("report a -o a.html").code == 0
    assert f"heterogeneity H {kept['measures']['heterogeneity']:.4f}" in Path("a.html").read_text()


def test_a_folder_without_measures_still_opens_and_goes_on(hold):
    assert hold([*RUN.split(), "--split", SPLIT, "--out", "a"]).code == 0
    path = Path("a/split.json")
    split = Split.load(path)
    split.save(path, described(split, sets.load("digits", {})).counts)
    assert "measures" not in json.loads(path.read_text())
    assert hold("report a -o a.html").code == 0 and "heterogeneity H" not in Path("a.html").read_text()
    assert hold("run --out a --resume --rounds 2").code == 0
    assert json.loads(path.read_text())["measures"].keys() == KEYS
    split.save(path, None, {"clients": 3})
    done = hold("report a -o b.html")
    assert done.code == 2 and "its measures are not" in done.err and not Path("b.html").exists()


def test_clients_that_are_made_when_they_come(hold):
    """Sizes are of all; what needs labels is of the first hundred, which are what `made` gives."""
    done = hold(f"{RUN} {MADE} --split own --out a")
    assert done.code == 0, done.err
    kept = json.loads(Path("a/split.json").read_text())
    source = sets.load("synthetic", {"clients": 1000, "samples": 7}).source
    assert source
    y = source.made(range(100))[1].reshape(100, 7)
    assert kept["counts"] == [np.bincount(own, minlength=10).tolist() for own in y]
    found = kept["measures"]
    assert (found["clients"], found["measured"], found["size_mean"], found["distinct"]) == (1000, 100, 7, 7000)
    assert found["classes_mean"] == pytest.approx(np.mean([len(set(own.tolist())) for own in y]))
    assert "split own: 1,000 clients with 7 samples each\nits first 100 clients: " in done.err
    assert "so none is evaluated on its own: there is no client accuracy" in done.err
    assert hold("report a -o a.html").code == 0
    text = re.sub("<[^>]*>", "", Path("a.html").read_text())
    assert (
        "1,000 clients with 7 samples each, made when they come. Measured and drawn are the first of them: 100" in text
    )
    assert hold("run --out a --resume --rounds 2").code == 0


def test_drift_says_that_rounds_deal_anew(hold):
    done = hold(f"{RUN} --split 'iid(clients=12)' --drift period")
    assert done.code == 0 and "drift period: each round deals its clients' samples anew" in done.err


def test_a_split_without_a_run(hold):
    line = ["data", "split", SPLIT, "--seed", "3", "--out", "kept/split.json", "-o", "s.html"]
    done = hold(line)
    assert (done.code, done.err) == (0, "")
    split, data = Split.load("kept/split.json"), sets.load("digits", {})
    found = described(split, data)
    assert done.out.splitlines()[:2] == lines(SPLIT, found.measures, 10)
    assert f"seed 3, hash {split.hash[:12]}" in done.out and "<svg" in Path("s.html").read_text()
    again = hold([*line[:5], "--json"]).rows[0]
    assert again["hash"] == split.hash and again["measures"] == found.measures
    assert again["marginals"] == np.bincount(data.y[np.concatenate(list(split.clients))], minlength=10).tolist()
    # The run of that seed has this split; a run that is given the file has it too.
    assert hold([*RUN.split(), "--split", SPLIT, "--seed", "3", "--out", "a"]).code == 0
    assert Split.load("a/split.json").hash == split.hash
    assert hold(f"{RUN} --split kept/split.json --out b").code == 0
    assert Split.load("b/split.json").hash == split.hash
    assert hold("data split kept/split.json --json").rows[0]["hash"] == split.hash


@pytest.mark.parametrize("line", ["'iid(clients=5)'", f"own {MADE}"])
def test_the_heat_map_alone_is_a_whole_svg(hold, line):
    assert hold(f"data split {line} -o s.svg").code == 0
    text = Path("s.svg").read_text()
    root = Tree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and "var(" not in text and "http://www.w3.org" in text
    words = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("samples in a cell, from light to dark: none, 1 and more" in said for said in words)
    classes = {node.get("class") for node in root.iter("{http://www.w3.org/2000/svg}path")}
    assert any(re.fullmatch(r"h[1-6]", name or "") for name in classes)


@pytest.mark.parametrize(
    "line, words",
    [
        ("'dirichlt(alpha=0.1)' -o s.png", ["did you mean dirichlet", ".html or .svg"]),
        ("'iid(clients=5)' --seed x", ["seed"]),
        ("'iid(clients=5000)'", ["5000"]),
        ("'iid(clients=5)' --data digts", ["digts"]),
        ("'iid(clients=5)' --out there.json", ["there.json is there already"]),
        ("gone.json", ["gone.json"]),
        ("own", ["own"]),
        ("'iid(clients=5)' --data nobody.here:data", ["nobody"]),
    ],
)
def test_bad_input_writes_nothing(hold, line, words):
    Path("there.json").write_text("mine")
    done = hold(f"data split {line}")
    assert done.code == 2 and "Traceback" not in done.err
    assert all(word in done.err for word in words), done.err
    assert Path("there.json").read_text() == "mine" and [p.name for p in Path().iterdir()] == ["there.json"]


def test_an_unwritable_place_is_said(hold, tmp_path):
    Path("file").write_text("")
    done = hold("data split 'iid(clients=5)' --out file/split.json")
    assert done.code == 2 and "cannot write file/split.json" in done.err
