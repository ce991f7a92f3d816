"""Real worker processes on this machine, on loopback. Where ray is not installed these tests are skipped."""

import os
from collections.abc import Callable, Iterator

import pytest
import torch

from holdfast.execute.cluster import EXTRA, Cluster, installed, package, unmoved

MOST = 3
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")  # read when it is imported


@pytest.fixture(scope="session")
def cluster() -> Iterator[Callable[[int], Cluster]]:
    """Workers of one Ray, which is the caller's own here: three cores are said to be there, whatever there are."""
    if not installed():  # the widest fixture comes first
        pytest.skip(EXTRA)
    ray = package()
    with unmoved():
        ray.init(address="local", num_cpus=MOST, include_dashboard=False, log_to_driver=False)
    yield lambda workers: Cluster(workers=workers)
    ray.shutdown()


@pytest.fixture(autouse=True)
def here(request, tmp_path, monkeypatch) -> None:
    if not installed() and "without_ray" not in request.node.name:
        pytest.skip(EXTRA)
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
