"""Small run folders written by hand, and a browser driven through its own pipe."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import select
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
SHEET = {
    "model": 400, "down": 400, "up": 800, "memory": 0, "state": 400, "passes": 1, "forwards": 0, "individual": False,
}  # fmt: skip
PLAN = {
    "engine": "loop", "lanes": 1, "compile": False, "threads": 1, "dtype": "float32", "device": "cpu",
    "torch": "2.13.0+cpu", "why": "loop: asked for",
}  # fmt: skip
RUN = {
    "method": "fedavg", "data": "digits", "split": "dirichlet(alpha=0.1, clients=100)", "model": "cnn", "rounds": 3,
    "augment": "none", "normalize": "data", "data_dir": "",
    "cohort": 10, "batch": 20, "lr": 0.1, "lr_decay": 1.0, "server_lr": 1.0, "drop_last": False, "seed": 0,
    "eval_every": 1, "checkpoint_every": 10, "on_nan": "stop", "drift": "both", "proxy": 0.0, "finetune": 0,
    "engine": "auto", "lanes": 0, "compile": False, "threads": 0, "dtype": "float32", "device": "cpu",
    "ray_address": "", "workers": 0, "workers_per_gpu": 1,
}  # fmt: skip
Make = Callable[..., Path]


def row(number: int, score: float | None, metric: str = "accuracy", **more: Any) -> dict[str, Any]:
    found = {"round": number, "lr": 0.1, "clients": 2, "trained": 2, "steps": 4, "train_loss": 1.0 / number}
    found |= {"bytes_down": 1000, "bytes_up": 500} | ({} if score is None else {metric: score})
    return found | {"train_seconds": 0.1, "eval_seconds": 0.1} | more


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a run's folder; what is given replaces what is usual."""

    def made(
        name: str = "a/0", scores: Any = (0.5, 0.7, 0.6), metric: str = "accuracy", rows: Any = None,
        counts: Any = None, hash: str = "ab" * 32, split_seed: int | None = None, sheet: Any = None,
        facts: Any = None, measures: Any = None, **run: Any,
    ) -> Path:  # fmt: skip
        folder = tmp_path / name
        folder.mkdir(parents=True)
        asked, facts = {**RUN, **run}, facts or {"parameters": 100}
        tables = {"run": asked, "plan": PLAN, "facts": facts, "sheet": sheet or SHEET}
        text = ""
        for key, table in tables.items():
            lines = [f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in table.items() if v is not None]
            text += "\n".join([f"[{key}]", *lines, "", ""])
        (folder / "run.toml").write_text(text, encoding="utf-8")
        rows = [row(i, score, metric) for i, score in enumerate(scores, 1)] if rows is None else rows
        (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        seed = asked["seed"] if split_seed is None else split_seed
        counts = [[3, 0], [1, 4], [0, 0]] if counts is None else counts
        held = [int(hash[:2], 16)]  # one client with one sample: the split differs where `hash` does
        own = hashlib.sha256(struct.pack("<3q", 1, 1, *held)).hexdigest()
        split = {"text": asked["split"], "seed": seed, "hash": own, "samples": 1, "clients": [held], "counts": counts}
        split |= {} if measures is None else {"measures": measures}
        (folder / "split.json").write_text(json.dumps(split))
        return folder

    return made


class Browser:
    """Chromium over its DevTools pipe: JSON objects that end in a zero byte."""

    FLAGS = (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
        "disable-component-update", "disable-sync", "remote-debugging-pipe",
    )  # fmt: skip

    def __init__(self, profile: Path):
        far_in, self.write = os.pipe()
        self.read, far_out = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (far_in, far_out)]

        def wire() -> None:  # where DevTools looks for them
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        flags = [f"--{flag}" for flag in self.FLAGS] + [f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            [str(CHROMIUM), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=wire, close_fds=False, start_new_session=True,
        )  # fmt: skip
        for end in (far_in, far_out, *ends):
            os.close(end)
        self.buffer, self.count, self.session, self.events = b"", 0, "", list[dict[str, Any]]()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def next(self, seconds: float = 60) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], seconds)
            chunk = os.read(self.read, 1 << 20) if ready else b""
            assert chunk, "the browser does not answer"
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Loads a file in a new tab; everything it logs, throws or asks for is kept in `events`."""
        self.session, self.events = "", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.next())

    def value(self, script: str) -> Any:
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def complaints(self) -> list[str]:
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def close(self) -> None:
        self.session = ""
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.write)
        os.close(self.read)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here; apt-get install chromium lets this test run")
    found = Browser(tmp_path_factory.mktemp("profile"))
    try:
        yield found
    finally:
        found.close()
