"""What a run is judged by, on every kind of data: the closing line, the tables, the page and the target agree on it."""

import importlib
import json
import statistics
import sys
from pathlib import Path

import pytest

from holdfast import headline
from holdfast.compare import Entry
from holdfast.report import grouped, load, render
from holdfast.table import Comparison, footnote, further, reached, table

DATA = str(Path(__file__).parents[1] / "data")
if DATA not in sys.path:
    sys.path.append(DATA)
movielens = importlib.import_module("test_movielens")  # makes files in the layout of MovieLens
CLICKS = "--data movielens1m --split \"natural(by='user')\" --model din --cohort 4 --rounds 2 --epochs 1 --threads 1"
RUN = "run --split 'dirichlet(alpha=0.3, clients=12)' --model logreg --cohort 4 --rounds 2 --epochs 1 --threads 1"


@pytest.fixture
def clicks(tmp_path, hold):
    copy = tmp_path / "copy"
    copy.mkdir()
    movielens.written(copy, *movielens.random_set(users=12))
    store = tmp_path / "store"
    assert hold(f"data import {copy} --name movielens1m --unchecked --data-dir {store}").code == 0
    return f"{CLICKS} --data-dir {store}"


def test_clicks_are_judged_by_their_ranking(hold, clicks, folder):
    """99 of 100 test rows are no click, so a model that has learned nothing is 99 % accurate."""
    done = hold(f"run {clicks} --out a")
    assert done.code == 0, done.err
    rows = folder("a").metrics
    lines = done.out.splitlines()
    assert all(f"AUC {row['auc']:.4f}" in line for row, line in zip(rows, lines, strict=False))
    first, more, kept = lines[-3:]
    tail = statistics.mean(row["auc"] for row in rows)
    assert first == (
        f"2 rounds: best AUC {max(row['auc'] for row in rows):.4f}, last AUC {rows[-1]['auc']:.4f}, "
        f"last ten AUC {tail:.4f}"
    )
    assert more == (
        f"last evaluated: HR@10 {rows[-1]['hr10']:.4f}, NDCG@10 {rows[-1]['ndcg10']:.4f}, "
        f"NDCG@10 as FedEve prints it {rows[-1]['ndcg10_printed']:.4f}"
    )
    assert kept == "kept in a" and "ccuracy" not in done.out
    view = load(Path("a"))
    assert view.metric == "auc" and view.scores == [(row["round"], row["auc"]) for row in rows]
    html = render(grouped([view]), title="t")
    assert "AUC over rounds, %" in html and "HR@10" in html and "Auc" not in html


def test_a_comparison_ranks_clicks_by_auc_and_aims_at_it(hold, clicks):
    done = hold(f"compare {clicks} --methods 'fedavg; fedprox(mu=1.0)' --seeds 1 --out c")
    assert done.code == 0, done.err
    kept = json.loads(Path("c/comparison.json").read_text())
    rows = [json.loads(line) for line in Path("c/fedavg/seed-0/metrics.jsonl").read_text().splitlines()]
    assert kept["table"][0]["last"] == f"{100 * rows[-1]['auc']:.2f}"
    assert kept["target"] == pytest.approx(statistics.mean(row["auc"] for row in rows))
    hits = statistics.mean(row["hr10"] for row in rows)
    assert kept["further"][0]["HR@10"] == f"{100 * hits:.2f}" and "AUC in %" in done.out and "HR@10" in done.out
    assert "HR@10" in Path("c/report.html").read_text()


def test_the_closing_line_tells_how_clients_fare(hold, folder):
    done = hold(f"{RUN} --out a")
    row = folder("a").metrics[-1]
    assert done.out.splitlines()[-2] == (
        f"last evaluated: client accuracy {row['client_accuracy']:.4f}, client sd {row['client_sd']:.4f}, "
        f"client worst decile {row['client_worst_decile']:.4f}"
    )
    last = hold(f"{RUN} --json").rows[-1]["summary"]
    assert last["last_client_sd"] == row["client_sd"] and last["last_accuracy"] == row["accuracy"]


def entry(method, seed, *rows):
    sent = {"bytes_down": 10, "bytes_up": 5}
    return Entry(method, seed, "", [{"round": i, **sent, **row} for i, row in enumerate(rows, 1)])


def test_a_target_is_of_what_the_run_is_judged_by():
    """Round 1 is accurate and ranks badly; a missing figure is not at any target."""
    run = entry("fedavg", 0, {"accuracy": 0.99, "auc": 0.5}, {"accuracy": 0.99, "auc": None}, {"auc": 0.8})
    assert reached(run, 0.7) == (3, 45) and headline.curve(run.rows, "auc") == [0.5, 0.8]


def test_methods_that_are_judged_differently_are_told_apart():
    rows = {"accuracy": 0.5, "domain_accuracy": 0.4}, {"accuracy": 0.7, "domain_accuracy": 0.6}
    own = {"personal_accuracy": 0.9, "personal_sd": 0.1}
    found = Comparison(("fedavg", "fedper"), (0,), None, (entry("fedavg", 0, *rows), entry("fedper", 0, own)), True)
    assert footnote(found).startswith("accuracy (fedper by personal accuracy) in %")
    assert [row["last"] for row in table(found)] == ["70.00", "90.00"]
    assert further(found) == [
        {"method": "fedavg", "domain accuracy": "50.00", "personal sd": "-"},
        {"method": "fedper", "domain accuracy": "-", "personal sd": "10.00"},
    ]


def test_nothing_further_is_no_table():
    found = Comparison(("fedavg",), (0,), None, (entry("fedavg", 0, {"accuracy": 0.5}),), True)
    assert further(found) == [] and headline.metric([]) == "accuracy"


def test_groups_are_means_of_the_last_ten_rounds():
    rows = [{"domains": {"photo": i / 100, "sketch": 0.5}} for i in range(20)] + [{"round": 21}]
    assert headline.groups(rows, "domains") == pytest.approx({"photo": 0.145, "sketch": 0.5})
    assert headline.groups([], "domains") == {}
