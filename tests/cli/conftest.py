"""What the tests of the command line share: calling it in this process or in a real one, and looking at folders."""

import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from holdfast import cli

SOURCE = Path(__file__).parents[2] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}
NUMBERS = itertools.count()


@dataclass
class Ended:
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line, parse_constant=not_json) for line in self.out.splitlines()]


def not_json(word: str) -> Any:
    raise ValueError(f"{word} is no JSON (RFC 8259)")


class Folder:
    """A run's folder, as a user finds it."""

    def __init__(self, path: Path):
        self.path = path

    @property
    def metrics(self) -> list[dict[str, Any]]:
        text = (self.path / "metrics.jsonl").read_text()
        return [json.loads(line, parse_constant=not_json) for line in text.splitlines()]

    @property
    def same(self) -> list[dict[str, Any]]:
        """The rows without wall-clock figures (product.md: only keys that end in `_seconds`)."""
        return [{k: v for k, v in row.items() if not k.endswith("_seconds")} for row in self.metrics]

    @property
    def checkpoints(self) -> list[Path]:
        return sorted(p for p in (self.path / "checkpoint").iterdir() if p.name.isdigit())

    @property
    def bits(self) -> dict[str, Any]:
        """Everything of the newest checkpoint, tensors as bytes."""
        newest = self.checkpoints[-1]
        tensors = load_file(newest / "state.safetensors")
        facts = json.loads((newest / "state.json").read_text())
        held = {k: (str(t.dtype), tuple(t.shape), t.contiguous().numpy().tobytes()) for k, t in tensors.items()}
        return {"round": facts["round"], "ids": facts["ids"], **held}

    @property
    def content(self) -> dict[str, bytes] | None:
        """Every file with its bytes; None where there is no folder."""
        if not self.path.is_dir():
            return None
        return {str(p.relative_to(self.path)): p.read_bytes() for p in self.path.rglob("*") if p.is_file()}


def words(line: str | list[str]) -> list[str]:
    return shlex.split(line) if isinstance(line, str) else line


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Folder]:
    return lambda name: Folder(tmp_path / name)


@pytest.fixture
def hold(capfd: Any) -> Callable[[str | list[str]], Ended]:
    """`holdfast LINE` in this process."""

    def call(line: str | list[str]) -> Ended:
        capfd.readouterr()
        try:
            code = cli.main(words(line))
        except SystemExit as left:
            code = int(left.code or 0)
        return Ended(code, *capfd.readouterr())

    return call


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., Ended]:
    """`python -m holdfast LINE` as a process of its own."""

    def call(line: str | list[str], **more: Any) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words(line)],
            cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, **more,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str], str]:
    """Writes a module of the user's into the current folder, under a name that was never imported."""

    def write(text: str) -> str:
        name = f"mine_{os.getpid()}_{next(NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


class Forks:
    """Real processes that need no second to import torch; see `_forks.py`."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("_forks.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )  # fmt: skip

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.server.stdin and self.server.stdout
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def start(self, line: str | list[str], cwd: Path, log: str = "log", die: tuple[int, str] | None = None) -> int:
        return self.ask(argv=words(line), cwd=str(cwd), log=log, die=die)["pid"]

    def wait(self, pid: int) -> int:
        """The exit code; minus the signal's number if a signal ended it."""
        return self.ask(wait=pid)["status"]

    def run(self, line: str | list[str], cwd: Path, log: str = "log", die: tuple[int, str] | None = None) -> Ended:
        code = self.wait(self.start(line, cwd, log, die))
        return Ended(code, (cwd / f"{log}.out").read_text(), (cwd / f"{log}.err").read_text())

    def kill(self, pid: int) -> int:
        os.kill(pid, signal.SIGKILL)  # a child that has ended is not reaped before `wait`, so the id is still its own
        return self.wait(pid)


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    assert made.server.stdin
    made.server.stdin.close()
    made.server.wait(30)
