"""The page: its structure, its numbers against ones computed by hand, and texts that must not run."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from holdfast.data.told import KEYS
from holdfast.errors import Refused
from holdfast.report import grouped, load, render, write
from holdfast.report.charts import ticks
from holdfast.report.figures import curve, ranges, reached, size
from holdfast.report.heat import edges, told
from holdfast.report.notes import finding, notes
from holdfast.report.repeat import DEFAULTS, command

EVIL = '<script>alert("x")</script>'
VOID = {"meta", "link", "br", "path", "circle", "rect"}


class Page(HTMLParser):
    """Tags in order, text, and whether every tag is closed where it should be."""

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def page(*folders: Path, **options) -> Page:
    return Page(render(grouped([load(folder) for folder in folders]), **{"title": "A title", **options}))


def three(make, method: str, finals: tuple[float, ...], **run) -> list[Path]:
    return [
        make(f"{method}/{seed}", method=method, seed=seed, scores=(0.2, 0.9, final), hash=f"{seed}f" * 32, **run)
        for seed, final in enumerate(finals)
    ]


def test_structure(make):
    found = page(*three(make, "fedavg", (0.5, 0.6)), *three(make, "scaffold", (0.7, 0.8)))
    ids = [attrs["id"] for _, attrs in found.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    assert [i for i in ids if i in ("result", "curves", "split", "cost", "repeat")] == [
        "result", "curves", "split", "cost", "repeat",
    ]  # fmt: skip
    assert "2 methods with seeds 0–1 each, 3 rounds on digits" in found.text  # noqa: RUF001
    assert sum(tag == "h1" for tag, _ in found.tags) == 1
    charts = [attrs for tag, attrs in found.tags if tag == "svg" and "chart" in (attrs.get("class") or "")]
    assert len(charts) == 2 + 1 + 1 + 2 * 2  # accuracy wide and narrow, loss, bytes, two splits wide and narrow
    assert all(attrs["aria-label"] and attrs["tabindex"] == "0" for attrs in charts)


def test_nothing_is_loaded_and_only_its_own_script_may_run(make):
    html = render(grouped([load(make())]), title="t")
    assert not re.search(r"""(src|href)=["'](?!#|data:,)""", html)
    assert not re.search(r"@import|url\((?!#)", html)
    assert "default-src 'none'" in html and "unsafe" not in html
    assert " style=" not in html and not re.search(r"\son[a-z]+=", html)


def test_texts_are_escaped(make):
    folder = make(f"{EVIL.replace('/', '')}/0", method=EVIL, split=f"x{EVIL}", model="a&b", engine=EVIL)
    html = render(
        grouped([load(folder)]), title=EVIL, rows=[{EVIL: EVIL, "n": "<b>"}], command=f"run {EVIL}",
    )  # fmt: skip
    assert "<script>alert" not in html and "<b>" not in html
    found = Page(html)
    assert sum(tag == "script" for tag, _ in found.tags) == 1 + 3 + 1  # data of three charts and a split, and the code
    assert found.text.count('alert("x")') >= 5


def test_table_against_numbers_by_hand(make):
    # last rounds 0.5, 0.6, 0.7: mean 0.6, sd 0.1; best 0.9 each; last ten: (0.2 + 0.9 + last) / 3
    found = page(*three(make, "fedavg", (0.5, 0.6, 0.7))).text
    closing = [(1.1 + last) / 3 for last in (0.5, 0.6, 0.7)]
    mean = sum(closing) / 3
    sd = math.sqrt(sum((v - mean) ** 2 for v in closing) / 2)
    assert "best round, % 90.00 last round, % 60.00 ± 10.00" in found
    assert f"mean of last ten, % {100 * mean:.2f} ± {100 * sd:.2f}" in found
    assert "bytes in all, a run 4.5 kB" in found


def test_mean_of_last_ten_takes_the_last_ten_evaluated(make):
    scores = [None if i % 2 else i / 100 for i in range(30)]  # 0.00, 0.02 ... 0.28: the last ten are 0.10 to 0.28
    assert "mean of last ten, % 19.00" in page(make(scores=scores, rounds=30)).text


def test_target(make):
    views = [load(folder) for folder in three(make, "fedavg", (0.5, 0.6))]
    assert [reached(view, 0.9) for view in views] == [(2, 3000), (2, 3000)]
    assert reached(views[0], 0.95) is None
    html = render(grouped(views), title="t", target=0.9)
    assert "rounds to 90 %" in html and "target 90 %" in html and "3 kB" in html
    assert "not reached" in render(grouped(views), title="t", target=0.95)


def test_curve_is_the_mean_over_the_runs_that_have_the_round(make):
    a, b = make("a/0", scores=(0.2, 0.4, 0.6)), make("a/1", seed=1, scores=(0.4, None))
    (group,) = grouped([load(a), load(b)])
    points = curve(group, "accuracy")
    assert [(p.round, round(p.y.mean, 6), p.y.n) for p in points] == [(1, 0.3, 2), (2, 0.4, 1), (3, 0.6, 1)]
    assert points[0].y.sd == pytest.approx(0.1 * math.sqrt(2)) and points[1].y.sd is None
    assert [p.x for p in curve(group, "accuracy", against_bytes=True)] == [1500, 3000, 4500]
    assert 'class="line part"' in render([group], title="t")


def test_a_ready_table_is_shown_as_it_is(make):
    found = page(make(), rows=[{"method": "fedavg", "n": "3", "best": "0.9 ± 0.1"}, {"method": "sam", "why": "failed"}])
    assert "method n best why fedavg n 3 best 0.9 ± 0.1 why sam n best why failed" in found.text


def test_unfinished_runs_are_named_and_not_counted(make):
    folders = [make("a/0"), make("a/1", seed=1, scores=(0.1,))]
    found = page(*folders).text
    assert f"Not finished: {folders[1]} (1 of 3 rounds)" in found
    assert "1 of 2 finished" in found and "last round, % 60.00" in found
    assert "0 of 1 finished" in page(folders[1]).text  # a method with none is shown by what it has


def test_personal_accuracy_has_its_own_chart(make):
    sets = [make("a"), make("b", method="per(layers='head')", metric="personal_accuracy", scores=(0.3, 0.8, 0.9))]
    found = page(*sets).text
    assert "Personal accuracy over rounds" in found and "Accuracy over rounds" in found
    assert "not comparable with accuracy" in found and "It is given for per(layers='head')" in found
    assert not finding(grouped([load(folder) for folder in sets]))  # two metrics have no order


def test_runs_without_any_score_or_loss(make):
    rows = [{"round": 1, "train_loss": None, "bytes_down": 0, "bytes_up": 0}]
    folder = make("a/0", rows=rows, rounds=4, eval_every=4, counts=[])
    found = page(folder).text
    assert f"Not evaluated yet: {folder}" in found and "so not drawn" in found


def test_missing_rows_and_dropped_updates_are_named(make):
    rows = [json.loads(line) for line in (make("x") / "metrics.jsonl").read_text().splitlines()]
    rows[2] |= {"dropped": [4, 5], "trained": 0}
    found = notes(grouped([load(make("a/0", rows=[rows[0], rows[2]]))]))
    assert any("has no row of round 2" in note for note in found)
    assert any("dropped: " in note and "(2)" in note for note in found)
    assert any("did not train (2 visits" in note for note in found)


def test_notes_on_splits_and_settings(make):
    def told_of(*folders):
        return " ".join(notes(grouped([load(folder) for folder in folders])))

    assert "Every seed has its own split (2 in all)" in told_of(*three(make, "fedavg", (0.5, 0.6)))
    assert "All runs share one split" in told_of(make("s/0"), make("s/1", seed=1))
    assert "different splits" in told_of(make("p"), make("q", method="sam", hash="00" * 32))
    assert "1 setting differs between the rows: lr" in told_of(make("r"), make("t", lr=0.5))
    other = {"parameters": 100, "data_sha256": "z"}
    assert "the data is not the same" in told_of(make("u"), make("v", method="sam", facts=other))


def test_the_finding_is_paired_and_says_when_nothing_differs(make):
    near = [*three(make, "fedavg", (0.5, 0.8)), *three(make, "sam", (0.8, 0.52))]
    (text,) = finding(grouped([load(folder) for folder in near]))
    assert "above 0 in 1 of 2" in text and "do not tell the two apart" in text
    (text,) = finding(grouped([load(folder) for folder in near[:3]]))  # one seed in common
    assert "with one seed" in text
    far = [*near[:2], *three(make, "scaffold", (0.9, 0.9))]
    (text,) = finding(grouped([load(folder) for folder in far]))
    assert text.count("scaffold with 66.67 ± 0.00") == 1 and "above 0 in 2 of 2" in text


def test_split_in_words():
    assert told([[3, 0], [1, 4], [0, 0]]) == (
        "3 clients, 8 samples in 2 classes; a client holds 0 to 5 (median 3), of 1.5 classes in the mean; "
        "1 client is empty."
    )
    assert "Drawn are the first 100 clients" in told([[1, 1]] * 101)
    assert edges([[0, 14]]) == [1, 2, 4, 6, 9]
    assert edges([[0, 0]]) == [] and edges([[1, 1]]) == [1]


def test_small_pieces():
    assert ticks(0.13, 0.92) == (0, 0.2, 0.4, 0.6, 0.8, 1)
    assert ticks(1, 30, whole=True) == (0, 5, 10, 15, 20, 25, 30)
    assert len(ticks(0.5, 0.5)) > 1
    assert [size(n) for n in (0, 999, 4500, 91_992_000, 5e12)] == ["0 B", "999 B", "4.5 kB", "92 MB", "5000 GB"]
    assert ranges([3, 1, 2, 7]) == "1–3, 7"  # noqa: RUF001


def test_repeat_command_parses_back_to_the_same_run(make):
    from holdfast.experiment import Run
    from holdfast.parser import parser_of

    options = {
        "method": "sam(rho=0.1, eps=1e-07) + scaffold(option='II')", "cohort": "bernoulli(0.2)", "epochs": 5,
        "lr": 0.05, "lr_decay": 0.998, "drop_last": True, "seed": 3, "on_nan": "drop",
        "engine": "loop", "dtype": "float64",
    }  # fmt: skip
    view = load(make("with space/0", **options))
    line = command(view)
    assert line is not None
    words = shlex.split(line)
    given = vars(parser_of().parse_args(words[1:]))
    assert given["out"] == f"{view.folder}-again"
    kept = {key: value for key, value in given.items() if key in Run.__dataclass_fields__}
    again = {key: value for key, value in Run(**kept).texts().items() if value is not None}
    assert again == view.run
    assert "--batch" not in words and words[:2] == ["holdfast", "run"]


def test_defaults_are_those_of_a_run():
    from holdfast.experiment import Run

    assert {key: value for key, value in Run().texts().items() if value is not None} == DEFAULTS


def test_what_no_command_can_repeat(make):
    view = load(make("a", data="given in Python: Dataset"))
    assert command(view) is None
    assert "No command: data of this run existed in Python only" in page(view.folder).text
    other = command(load(make("b", split_seed=9)))
    assert other is not None and "b/split.json" in other  # a split that the seed does not make


def test_size_of_twelve_and_of_fifty_runs(make):
    counts = [[(7 * i + 3 * c) % 11 for c in range(10)] for i in range(100)]
    folders = [
        make(f"{m}/{s}", method=f"sam(rho=0.{m})", seed=s, rounds=50, counts=counts, hash=f"{s}" * 64,
             scores=[math.sin(i + s) ** 2 for i in range(50)])
        for m in range(1, 18) for s in range(3)
    ]  # fmt: skip
    views = [load(folder) for folder in folders]
    assert len(render(grouped(views[:12]), title="t").encode()) < 400_000
    assert len(render(grouped(views), title="t").encode()) < 1_500_000


def test_render_is_the_same_twice_and_needs_runs(make):
    groups = grouped([load(make())])
    assert render(groups, title="t") == render(groups, title="t")
    with pytest.raises(Refused):
        render([], title="t")


def test_write_is_whole_or_refused(tmp_path):
    write(tmp_path / "new" / "r.html", "<p>ü</p>")
    assert (tmp_path / "new" / "r.html").read_text(encoding="utf-8") == "<p>ü</p>"
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["r.html"]
    with pytest.raises(Refused, match="cannot write"):
        write(tmp_path / "new" / "r.html" / "below.html", "")


def test_the_report_does_not_load_torch():
    code = "import sys, holdfast.report; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def row(number: int, **more) -> dict:
    sent = {"bytes_down": 1000, "bytes_up": 500, "train_loss": 1.0, "train_seconds": 0.1, "eval_seconds": 0.1}
    return {"round": number, "lr": 0.1, "clients": 2, "trained": 2, "steps": 4, **sent, "accuracy": 0.5, **more}


def test_further_measures_are_means_of_the_last_ten_rounds(make):
    scores = [{"domain_accuracy": 0.2 * i, "domains": {"a<b": 0.1 * i, "photo_s": 0.3 * i}} for i in (1, 2)]
    rows = [row(i, **more) for i, more in enumerate(scores, 1)]
    html = render(grouped([load(make(rows=rows))]), title="t")
    text = Page(html).text
    # (0.2 + 0.4) / 2 = 0.30; a<b (0.1 + 0.2) / 2 = 0.15; photo_s 0.45
    assert "Further measures" in text and "domain accuracy 30.00" in text and "photo s 45.00" in text
    assert "a<b 15.00" in text and "a<b" not in html
    assert "Further measures" not in page(make("b/0")).text


def test_whose_rows_a_client_is_judged_by(make):
    """No client with test rows: expected from its class shares. Folders older than that figure had rows, or no such."""
    rows, split = [row(1, client_accuracy=0.4)], dict.fromkeys(KEYS, 1)
    kept = [split | {"tested": 0}, split | {"tested": 3}, None]
    folders = [make(f"{i}/0", rows=rows, rounds=1, measures=found) for i, found in enumerate(kept)]
    texts = [page(folder).text for folder in folders]
    assert "expected on test data with its class shares" in texts[0]
    assert all("on each client's own test rows" in text and "expected on test" not in text for text in texts[1:])
