"""Real worker processes on this machine, on loopback. Without ray these tests are skipped."""

import os
from collections.abc import Callable, Iterator

import pytest
import torch

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")  # read when it is imported
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'holdfast[ray]'")

from holdfast.execute.cluster import Cluster, unmoved  # noqa: E402

MOST = 3


@pytest.fixture(scope="session")
def cluster() -> Iterator[Callable[[int], Cluster]]:
    """Workers of one Ray, which is the caller's own here: three cores are said to be there, whatever there are."""
    with unmoved():
        ray.init(address="local", num_cpus=MOST, include_dashboard=False, log_to_driver=False)
    yield lambda workers: Cluster(workers=workers)
    ray.shutdown()


@pytest.fixture(autouse=True)
def one_thread(tmp_path, monkeypatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
