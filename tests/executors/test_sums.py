"""In which order torch adds: kept in the plan, said where it is not strict, and no error where nobody knows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.execute import sums

SOURCE = str(Path(__file__).parents[2] / "src")
LINE = "run --threads 1 --split 'iid(clients=4)' --cohort 2 --steps 2 --model logreg --rounds 1"
EARLY = "import torch\ntorch.ones(64, 64) @ torch.ones(64, 64)\n"  # MKL hears its settings at the first product
MAIN = "import shlex, sys\nfrom holdfast.cli import main\nsys.exit(main(shlex.split(sys.argv[1])))"
LATE = "torch multiplied before holdfast was imported"

pytestmark = pytest.mark.skipif(sums.in_force() == "unknown", reason="this torch has no MKL that can be asked")


@pytest.fixture
def start(tmp_path):
    """`holdfast LINE` in a process that runs some code first and has MKL_CBWR set, or not."""

    def call(line: str, before: str = "", cbwr: str = "") -> str:
        kept = {key: value for key, value in os.environ.items() if key != "MKL_CBWR"}
        done = subprocess.run(
            [sys.executable, "-c", before + MAIN, line], cwd=tmp_path, capture_output=True, text=True,
            env={**kept, "PYTHONPATH": SOURCE, **({"MKL_CBWR": cbwr} if cbwr else {})},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    return call


def planned(folder: Path) -> str:
    return next(row for row in (folder / "run.toml").read_text().splitlines() if row.startswith("sums"))


def test_sums_are_strict_and_nothing_is_said(start, tmp_path):
    assert "lane" not in start(f"{LINE} --out a") and planned(tmp_path / "a") == 'sums = "strict"'


def test_a_product_before_the_import_is_told(start, tmp_path):
    """MKL was set up by then, so a client's bits hang on its lane: the plan says so, and so does a line."""
    said = start(f"{LINE} --out a", EARLY)
    assert LATE in said and "import holdfast first or set MKL_CBWR=AUTO,STRICT" in said, said
    assert planned(tmp_path / "a") == 'sums = "free"'
    assert LATE not in start(f"{LINE} --out b", EARLY, cbwr="AUTO,STRICT")  # as the line advises


def test_a_setting_of_the_user_is_told(start, tmp_path):
    assert "MKL_CBWR=COMPATIBLE is set" in start(f"{LINE} --out a", cbwr="COMPATIBLE")
    assert planned(tmp_path / "a") == 'sums = "free"'


@pytest.mark.parametrize("again", ["run --out a --resume --rounds 2", "run a/run.toml --out b"])
def test_going_on_under_other_sums_is_told(start, tmp_path, again):
    assert planned_differs(start(f"{LINE} --out a")) is False
    assert planned_differs(start(again, EARLY)) is True
    # A file from before plans said so still opens, and nothing can be compared.
    path = tmp_path / "a" / "run.toml"
    path.write_text("".join(row for row in path.read_text().splitlines(True) if not row.startswith("sums")))
    assert planned_differs(start(again.replace("2", "3").replace("--out b", "--out c"), EARLY)) is False


def planned_differs(said: str) -> bool:
    return "planned with strict sums, going on with free sums: bits may differ" in said


def test_no_mkl_is_no_error(monkeypatch, tmp_path):
    nothing = tmp_path / "libtorch_cpu.so"
    monkeypatch.setattr(sums, "LIBRARY", nothing)
    assert sums.in_force() == "unknown" and sums.advice() == ""
    nothing.write_text("no library")
    assert sums.in_force() == "unknown"
