"""Reading run folders: what is wrong with one is named, and runs that differ by their seed belong together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import Refused
from holdfast.report import find, grouped, load


def test_a_folder_is_read_whole(make):
    view = load(make(seed=7, scores=(0.5, None, 0.6), hash="cd" * 32, counts=[[1, 2]]))
    assert (view.seed, view.finished, view.done, view.metric) == (7, True, 3, "accuracy")
    assert view.scores == [(1, 0.5), (3, 0.6)]
    assert view.bytes == 3 * 1500
    assert (view.counts, view.split_hash) == ([[1, 2]], json.loads((view.folder / "split.json").read_text())["hash"])


def test_a_line_cut_by_a_kill_is_no_row(make):
    folder = make(rounds=5)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"round": 4, "accu')
    view = load(folder)
    assert view.done == 3 and not view.finished


def spoil_run(folder: Path) -> None:
    (folder / "run.toml").write_text("[run\n")


def spoil_table(folder: Path) -> None:
    text = (folder / "run.toml").read_text()
    (folder / "run.toml").write_text(text.replace("[sheet]", "[shed]").replace("seed = 0", 'seed = "x"'))


def spoil_sheet(folder: Path) -> None:
    (folder / "run.toml").write_text((folder / "run.toml").read_text().replace("passes = 1", ""))


def spoil_rows(folder: Path) -> None:
    path = folder / "metrics.jsonl"
    path.write_text(path.read_text().replace('{"round": 2', '{"ro', 1))


def repeat_row(folder: Path) -> None:
    path = folder / "metrics.jsonl"
    path.write_text(path.read_text() + path.read_text())


def spoil_split(folder: Path) -> None:
    (folder / "split.json").write_text((folder / "split.json").read_text()[:40])


def spoil_counts(folder: Path) -> None:
    split = json.loads((folder / "split.json").read_text())
    (folder / "split.json").write_text(json.dumps({**split, "counts": [[1, 2], [1, "<b>"]]}))


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda folder: (folder / "run.toml").unlink(), "not the folder of a run"),
        (lambda folder: (folder / "metrics.jsonl").unlink(), "no round done yet"),
        (lambda folder: (folder / "metrics.jsonl").write_text(""), "no round done yet"),
        (lambda folder: (folder / "split.json").unlink(), "split.json cannot be read"),
        (spoil_run, "run.toml cannot be read"),
        (spoil_table, "no table [sheet]"),
        (spoil_sheet, "[sheet] has no number passes"),
        (spoil_rows, "line 2 is torn"),
        (repeat_row, "line 4 is not the row of round 4"),
        (spoil_split, "it is torn"),
        (spoil_counts, "counts"),
    ],
)
def test_damage_is_named(make, spoil, said):
    folder = make()
    spoil(folder)
    with pytest.raises(Refused) as refused:
        load(folder)
    assert said in str(refused.value) and str(folder) in str(refused.value)


def test_a_folder_of_runs_stands_for_them(make, tmp_path):
    for name in ("all/a/10", "all/a/9", "all/b"):
        make(name)
    found = [view.folder.relative_to(tmp_path) for view in find([tmp_path / "all", tmp_path / "all" / "b"])]
    assert [str(path) for path in found] == ["all/a/9", "all/a/10", "all/b"]


def test_nothing_to_report_is_refused(make, tmp_path):
    make("deep/er/est/0")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refused) as refused:
        find([tmp_path / "empty", tmp_path / "gone", tmp_path / "deep"])
    assert len(refused.value.problems) == 3
    with pytest.raises(Refused, match="no run to report"):
        find([])


def test_an_unreadable_run_below_a_folder_can_be_told_instead(make, tmp_path):
    make("all/good")
    bad = make("all/bad", rows=[])
    with pytest.raises(Refused, match="no round done yet"):
        find([tmp_path / "all"])
    told: list[str] = []
    assert [view.folder.name for view in find([tmp_path / "all"], told.append)] == ["good"]
    assert "all/bad" in told[0]
    with pytest.raises(Refused):  # a run that was named is not left out
        find([tmp_path / "all" / "good", bad], told.append)


def test_groups_differ_in_more_than_the_seed(make):
    folders = [
        make("a/1", seed=1), make("a/0"), make("b/0", method="scaffold"), make("c/0", lr=0.3), make("d/0", epochs=5),
    ]  # fmt: skip
    groups = grouped([load(folder) for folder in folders])
    assert [group.label for group in groups] == [
        "fedavg, lr=0.1", "scaffold, lr=0.1", "fedavg, lr=0.3", "fedavg, lr=0.1, epochs=5",
    ]  # fmt: skip
    assert [view.seed for view in groups[0].runs] == [0, 1]


def test_the_label_is_the_method_where_nothing_else_differs(make):
    groups = grouped([load(make("a")), load(make("b", method="sam(rho=0.1)"))])
    assert [group.label for group in groups] == ["fedavg", "sam(rho=0.1)"]
