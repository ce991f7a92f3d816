"""`holdfast compare`: one table whose numbers are those of its runs, resumable, and one failed run stops no other."""

import json
import statistics
from pathlib import Path

import pytest

from holdfast.report.figures import size

SPLIT = "--split 'dirichlet(alpha=0.3, clients=20)'"
BASE = f"compare --threads 1 {SPLIT} --cohort 5 --model logreg --rounds 4 --epochs 1 --out c"
TWO = f"{BASE} --methods 'fedavg; fedprox(mu=1.0)' --seeds 2"


def rows(folder: str) -> list[dict]:
    return [json.loads(line) for line in Path("c", folder, "metrics.jsonl").read_text().splitlines()]


def test_the_table_is_that_of_its_runs(hold):
    done = hold(f"{TWO} --json")
    assert done.code == 0, done.err
    last = json.loads(done.out.splitlines()[-1])
    best = [max(r["accuracy"] for r in rows(f"fedavg/seed-{s}")) for s in (0, 1)]
    first = last["table"][0]
    assert first["best"] == f"{100 * statistics.mean(best):.2f} ± {100 * statistics.stdev(best):.2f}"
    assert first["seeds"] == "2" and Path("c/report.html").exists()
    # The default target is what the baseline reaches: the mean of its last ten rounds over seeds.
    tail = statistics.mean(statistics.mean(r["accuracy"] for r in rows(f"fedavg/seed-{s}")) for s in (0, 1))
    assert f"rounds to {100 * tail:.1f}" in first


def test_bytes_to_target_count_every_round_up_to_it(hold):
    assert hold(f"{TWO} --target 0.05").code == 0
    table = json.loads(Path("c/comparison.json").read_text())["table"]
    ways = []
    for s in (0, 1):
        told = rows(f"fedavg/seed-{s}")
        first = next(i for i, r in enumerate(told) if r["accuracy"] >= 0.05)
        ways.append((first + 1, sum(r["bytes_down"] + r["bytes_up"] for r in told[: first + 1])))
    assert table[0]["rounds to 5.0"] == f"{statistics.mean(way[0] for way in ways):.1f}"
    assert table[0]["traffic to it"] == size(statistics.mean(way[1] for way in ways))


def test_a_target_that_nobody_reaches(hold):
    assert hold(f"{TWO} --target 1.0").code == 0
    table = json.loads(Path("c/comparison.json").read_text())["table"]
    assert all(row["rounds to 100.0"].startswith("never") for row in table)


def test_methods_of_a_seed_see_the_same_clients(hold):
    assert hold(TWO).code == 0
    for seed in (0, 1):
        facts = [Path("c", m, f"seed-{seed}", "split.json").read_text() for m in ("fedavg", "fedprox_mu=1.0")]
        assert facts[0] == facts[1]
        assert [r["steps"] for r in rows(f"fedavg/seed-{seed}")] == [
            r["steps"] for r in rows(f"fedprox_mu=1.0/seed-{seed}")
        ]


def test_resume_does_only_what_is_missing(hold):
    assert hold(TWO).code == 0
    kept = Path("c/fedavg/seed-0/checkpoint/00000004/state.safetensors").stat().st_mtime_ns
    missing = Path("c/fedavg/seed-1/metrics.jsonl").read_text()
    for path in sorted(Path("c/fedavg/seed-1").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    Path("c/fedavg/seed-1").rmdir()
    assert hold(f"{TWO} --resume").code == 0
    assert Path("c/fedavg/seed-0/checkpoint/00000004/state.safetensors").stat().st_mtime_ns == kept
    again = [{k: v for k, v in r.items() if not k.endswith("_seconds")} for r in rows("fedavg/seed-1")]
    assert again == [
        {k: v for k, v in json.loads(line).items() if not k.endswith("_seconds")} for line in missing.splitlines()
    ]


def test_one_failed_run_stops_no_other(hold):
    done = hold(f"{BASE} --methods 'fedavg; server(lr=1e38)' --seeds 1 --lr 1000")
    assert done.code == 1
    table = json.loads(Path("c/comparison.json").read_text())["table"]
    assert table[0]["seeds"] == "1" and table[1]["seeds"] == "0 (1 failed)"
    assert "server(lr=1e38), seed 0" in done.err and "not finite" in done.err


@pytest.mark.parametrize(
    "line, words",
    [
        (f"{BASE} --methods 'fedavg; specgard'", ["specgard", "specgrad"]),
        (f"{BASE} --methods 'fedavg; eve + adam' --lr -1", ["'adam' cannot stand with 'eve'", "lr=-1.0"]),
        (f"{BASE} --methods 'prox; prox(mu=0.1)'", ["2 times"]),
        (f"{BASE} --methods ';'", ["nothing to compare"]),
        (f"{BASE} --methods fedavg --seeds 0", ["seeds=0"]),
        (f"{TWO} --resume", ["not the folder of a comparison"]),
    ],
)
def test_bad_input_writes_nothing(hold, line, words):
    done = hold(line)
    assert done.code == 2 and "Traceback" not in done.err
    assert all(word in done.err for word in words), done.err
    assert not Path("c").exists()


def test_another_comparison_in_the_same_folder_is_refused(hold):
    assert hold(TWO).code == 0
    assert hold(TWO).code == 2
    done = hold(f"{BASE} --methods 'scaffold' --seeds 1 --resume")
    assert done.code == 2 and "methods is 'fedavg; fedprox(mu=1.0)'" in done.err
    done = hold(f"{TWO} --resume --lr 0.5")
    assert done.code == 2 and "lr is 0.1" in done.err


def test_a_comparison_from_a_file(hold):
    Path("c.toml").write_text(
        'methods = ["fedavg", "fedprox"]\nseeds = 1\nrounds = 2\ncohort = 5\nmodel = "logreg"\nthreads = 1\n'
        'split = "iid(clients=20)"\n'
    )
    done = hold("compare c.toml --set rounds=3 --out c --json")
    assert done.code == 0, done.err
    assert len(rows("fedavg/seed-0")) == 3
