"""`holdfast flower start`: a SuperLink and SuperNodes on this machine, over TLS, and the run; all of them its children.

Every one is stopped by its own process id, whatever happens here. What each says is kept in logs/.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import Failed, Refused

READY = 90.0  # seconds for the SuperLink to answer
AGAIN, PAUSE = 30, 5.0  # how often a node is started again, and seconds before it
GRACE = 10.0  # seconds for a process to end when asked, before it is killed
CONNECTION = "holdfast"
TLS = {"ca-certfile": "keys/ca.pem", "certfile": "keys/server.pem", "keyfile": "keys/server.key"}
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
Tell = Callable[[str], None]


class Deployment:
    """A federation on loopback, as processes of their own."""

    def __init__(self, folder: Path, tell: Tell, simulate: bool = False):
        self.folder, self.tell = folder.resolve(), tell
        self.simulate = simulate
        self.port, self.logs = free_port(), self.folder / "logs"
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.again: Counter[str] = Counter()  # how often a node had to be started again
        self.env = {**os.environ, **QUIET, "FLWR_HOME": str(self.folder / ".flwr"), "PYTHONUNBUFFERED": "1"}
        self.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{self.env.get('PATH', '')}"
        wanted = ("pyproject.toml", *(() if simulate else ("nodes.toml", *TLS.values())))
        lacks = [name for name in wanted if not (self.folder / name).is_file()]
        if lacks:
            raise Refused(
                f"{folder} lacks {', '.join(lacks)}; write them by holdfast flower init and holdfast flower keys"
            )
        self.config: dict[str, Any] = tomllib.loads((self.folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
        self.nodes: list[str] = [
            n["name"] for n in tomllib.loads((self.folder / "nodes.toml").read_text()).get("node", [])
        ]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def key(self, name: str) -> str:
        return str(self.folder / "keys" / name)

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """A child in a process group of its own, so that Ctrl-C here is not heard there twice."""
        self.logs.mkdir(exist_ok=True)
        with (self.logs / f"{name}.log").open("ab") as log:
            made = subprocess.Popen(
                [program(words[0]), *words[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=self.env, start_new_session=True,
            )  # fmt: skip
        self.children[name] = made
        return made

    def link(self) -> None:
        """The SuperLink: TLS, nodes known by their keys, nothing installed while it runs, its state in a file.

        A simulation is one process tree on loopback and has neither.
        """
        (self.folder / ".flwr").mkdir(exist_ok=True)
        root = "insecure = true" if self.simulate else f"root-certificates = {json.dumps(self.key('ca.pem'))}"
        (self.folder / ".flwr" / "config.toml").write_text(
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\naddress = "{self.address}"\n{root}\n'
        )
        tls = [word for flag, file in TLS.items() for word in (f"--ssl-{flag}", str(self.folder / file))]
        how = ["--insecure", "--simulation"] if self.simulate else [*tls, "--enable-supernode-auth"]
        self.start(
            "superlink", "flower-superlink", "--host", "127.0.0.1", "--port", str(self.port), *how,
            "--disable-runtime-dependency-installation", "--database", str(self.folder / ".flwr" / "superlink.db"),
        )  # fmt: skip
        self.until_ready()

    def until_ready(self) -> None:
        trusted = None if self.simulate else ssl.create_default_context(cafile=self.key("ca.pem"))
        url, end = f"http{'' if self.simulate else 's'}://{self.address}/health", time.monotonic() + READY
        while time.monotonic() < end:
            self.alive("superlink")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url, timeout=2, context=trusted).close()
                return
            time.sleep(0.3)
        raise Failed(f"the SuperLink did not answer in {READY:g} s; see {self.logs / 'superlink.log'}")

    def alive(self, name: str) -> None:
        code = self.children[name].poll()
        if code is not None:
            raise Failed(f"{name} ended with code {code}; see {self.logs / f'{name}.log'}")

    def register(self) -> None:
        """Puts the allow-list into the SuperLink; who is there already stays."""
        for name in self.nodes:
            done = self.flwr("supernode", "register", self.key(f"{name}.pub"), CONNECTION, "--name", name)
            said = done.stdout + done.stderr
            if done.returncode and "already" not in said:
                raise Failed(f"{name} could not be registered: {' '.join(said.split())[-300:]}")

    def node(self, place: int, name: str = "", key: str = "") -> subprocess.Popen[bytes]:
        """A SuperNode with its key, its place and its own state folder."""
        name = name or self.nodes[place]
        state = self.folder / "state" / name
        own = f"partition-id={place} num-partitions={len(self.nodes)} state={json.dumps(str(state))}"
        return self.start(
            name, "flower-supernode", "--superlink", self.address, "--root-certificates", self.key("ca.pem"),
            "--auth-supernode-private-key", key or self.key(f"{name}.key"), "--port", str(free_port()),
            "--node-config", own,
        )  # fmt: skip

    def flwr(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One of Flower's commands, in a bounded time."""
        command = [program("flwr"), *words]
        try:
            return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"flwr {' '.join(words[:2])} did not end in {error.timeout:g} s") from error

    def run(self, **config: Any) -> str:
        """Begins the run, with other values of its configuration, and gives its id."""
        words = [f"{key.replace('_', '-')}={json.dumps(value)}" for key, value in config.items()]
        more = ["--run-config", " ".join(words)] if words else []
        if self.simulate:
            sites = f"num-supernodes={self.config['config']['clients']} client-resources-num-cpus=1"
            more += ["--federation-config", sites]
        done = self.flwr("run", ".", CONNECTION, "--format", "json", *more)
        found = answer(done.stdout)
        if not found.get("success"):
            raise Failed(f"flwr run failed: {' '.join((done.stdout + done.stderr).split())[-500:]}")
        return str(found["run-id"])

    def status(self, run: str) -> str:
        """'running', 'finished:completed', 'finished:failed', ..."""
        found = answer(self.flwr("ls", CONNECTION, "--run-id", run, "--format", "json").stdout).get("runs", [])
        return str(found[0]["status"]) if found else "unknown"

    def size(self) -> int:
        return self.notes.stat().st_size if self.notes.is_file() else 0

    def revive(self) -> None:
        """Starts nodes again that ended. One that was killed is turned away until the SuperLink has missed it, which
        takes up to a minute; so there are enough tries for more than that."""
        for place, name in enumerate(self.nodes):
            code = self.children[name].poll() if name in self.children else None
            if code is None:
                continue
            self.again[name] += 1
            if self.again[name] > AGAIN:
                raise Failed(f"{name} ends again and again, with code {code}; see {self.logs / f'{name}.log'}")
            self.tell(f"{name} ended with code {code}: started again")
            end(self.children[name])  # what it has left
            time.sleep(PAUSE)
            self.node(place)

    def watch(self, run: str, seconds: float = float("inf"), heard: int = 0, revive: bool = False) -> str:
        """Until the run has ended; what its server says is told as it comes."""
        end = time.monotonic() + seconds
        while True:
            self.alive("superlink")
            for child in self.children.values():
                child.poll()  # one that ended and is not heard of would seem alive to its own children
            if revive:
                self.revive()
            status = self.status(run)
            heard = self.heard(heard)
            if status.startswith("finished") or time.monotonic() > end:
                return status
            time.sleep(1)

    @property
    def notes(self) -> Path:
        """What the server tells, in the folder of the run."""
        return self.folder / Path(str(self.config["config"]["out"])).expanduser() / "server.log"

    def heard(self, since: int) -> int:
        said = self.notes.read_bytes()[since:] if self.notes.is_file() else b""
        whole = said[: said.rfind(b"\n") + 1]
        for line in whole.decode(errors="replace").splitlines():
            self.tell(line)
        return since + len(whole)

    def stop(self) -> None:
        """The nodes first, so that the SuperLink hears them leave."""
        for name in sorted(self.children, key=lambda n: n == "superlink"):
            end(self.children[name])


def end(child: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """By its own id, and what it leaves in the group that was made for it, such as a site's code that hangs."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(grace)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def deployment(folder: Path, tell: Tell = print, simulate: bool = False) -> Iterator[Deployment]:
    made = Deployment(folder, tell, simulate)
    with asked_to_stop():
        try:
            yield made
        finally:
            made.stop()


@contextlib.contextmanager
def asked_to_stop() -> Iterator[None]:
    """SIGTERM is heard as Ctrl-C is, so that no child is left."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def start(folder: Path, tell: Tell, simulate: bool = False) -> str:
    """The whole federation, from the first process to the last round; its last status."""
    with deployment(folder, tell, simulate) as made:
        what = "Flower's simulation" if simulate else f"{len(made.nodes)} SuperNodes over TLS"
        tell(f"SuperLink on {made.address}, {what}; logs in {made.logs}")
        heard = made.size()
        made.link()
        if not simulate:
            made.register()
            for place in range(len(made.nodes)):
                made.node(place)
        return made.watch(made.run(), heard=heard, revive=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program(name: str) -> str:
    """Flower's command beside this Python, else on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise Refused(f"the command {name} is not here; it comes with the extra: pip install holdfast[flower]")
    return found


def answer(text: str) -> dict[str, Any]:
    """Flower's JSON, which other lines may surround."""
    at = text.find("{")
    with contextlib.suppress(ValueError):
        return json.JSONDecoder().raw_decode(text[at:])[0] if at >= 0 else {}
    return {}
