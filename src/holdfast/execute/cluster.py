"""Ray itself: a cluster that runs, or one that is started here, and how tensors travel in it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.errors import Refused

EXTRA = "--engine ray needs the extra: pip install 'holdfast[ray]'"


@dataclass(frozen=True)
class Cluster:
    """What to compute with. No result depends on it."""

    address: str = ""  # of a cluster that runs; none: one of this process, on this machine alone
    workers: int = 0  # 0: as many as there is room for, now and later
    per_gpu: int = 1
    threads: int = 1  # of each worker
    device: str = "cpu"

    @property
    def wants(self) -> dict[str, float]:
        """What Ray sets aside for a worker."""
        return {"num_cpus": self.threads, "num_gpus": 0 if self.device == "cpu" else 1 / self.per_gpu}

    def room(self, resources: dict[str, float]) -> int:
        if self.workers:
            return self.workers
        gpus = int(resources.get("GPU", 0) * self.per_gpu + 1e-9)
        return max(1, int(resources.get("CPU", 0)) // self.threads if self.device == "cpu" else gpus)


def packed(t: Tensor) -> tuple[Any, str]:
    """As an array, whose memory all workers of a machine share."""
    return t.detach().cpu().contiguous().numpy(), t.device.type


def unpacked(given: tuple[Any, str]) -> Tensor:
    """On a device of the kind that it came from. Nobody may write into it."""
    array, kind = given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch's own, that the array is not writable
        return torch.from_numpy(array).to(kind)


def package() -> Any:
    """Ray, which nobody needs who does not ask for it."""
    return importlib.import_module("ray")


def installed() -> bool:
    return importlib.util.find_spec("ray") is not None


def reason(error: BaseException) -> str:
    """The line of an error that says what it is; Ray puts many around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = (line for line in reversed(lines) if "Error" in line.partition(":")[0])
    return next(named, lines[0] if lines else type(error).__name__)


@contextlib.contextmanager
def unmoved() -> Iterator[None]:
    """Ray puts a handler of its own on SIGTERM; the run's stays."""
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)


STARTED: list[Cluster] = []  # whose Ray this process has started or joined; none: the caller had it before


def connect(cluster: Cluster) -> None:
    """To the cluster that is named, or one that is started here, on loopback, and ends with this process."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not cluster.address:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # as on those systems: loopback only
    ray = package()
    if ray.is_initialized() and STARTED and STARTED[0] != cluster:
        ray.shutdown()
    if not ray.is_initialized():
        STARTED.clear()
        with unmoved(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            join(cluster)
        STARTED.append(cluster)
    ray.util.register_serializer(Tensor, serializer=packed, deserializer=unpacked)


def join(cluster: Cluster) -> None:
    ray = package()
    options: dict[str, Any] = {"address": "local", "include_dashboard": False}
    if cluster.address:
        reachable(cluster.address)
        options = {"address": cluster.address}
    elif cluster.device == "cpu":
        options["num_cpus"] = cluster.workers * cluster.threads or len(os.sched_getaffinity(0))
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise Refused(
            f"ray cannot be started or reached: {reason(error)}; docs/ray.md tells how to start it"
        ) from error


def reachable(address: str) -> None:
    """Told at once: Ray itself would try for a minute."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise Refused(
            f"ray-address={address!r}: nothing answers there ({said}); start a head by 'ray start --head --port 6379' "
            "and give its address, such as 10.0.0.1:6379"
        ) from error
