"""From the app's configuration to what either side computes with. All of it is text and numbers, parsed, never run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.data.sets import Dataset
from holdfast.data.splits import Split
from holdfast.errors import Refused
from holdfast.experiment import Ready, Run, ready
from holdfast.flower.policy import policy
from holdfast.options import attempt, positive, whole

Config = Mapping[str, Any]
RUN = (
    "method", "model", "augment", "rounds", "cohort", "epochs", "steps", "batch", "lr", "lr_decay", "server_lr",
    "drop_last", "seed", "eval_every", "dtype",
)  # fmt: skip
DATA = ("clients", "shape", "classes", "mean", "std")
SERVER = ("policy", "out", "join_seconds")


@dataclass(frozen=True)
class Samples:
    """What every site's samples look like, agreed on beforehand: no constant is taken from a site's own data."""

    clients: int
    shape: tuple[int, ...]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def dataset(self, x: Any, y: Any, test_x: Any, test_y: Any, name: str) -> Dataset:
        made = Dataset.of(x, y, test_x, test_y, self.classes, self.mean, self.std, name=name)
        if made.shape != self.shape:
            raise Refused(f"{name}: samples have shape {made.shape}; the app's configuration says {self.shape}")
        return made


def options(config: Config) -> dict[str, Any]:
    """The options of the run, unknown names refused."""
    plain = {key.replace("-", "_"): value for key, value in config.items()}
    known = {*RUN, *DATA, *SERVER}
    if wrong := [key for key in plain if key not in known]:
        raise Refused(*(f"the app's configuration has no '{key}'; it has {', '.join(sorted(known))}" for key in wrong))
    return plain


def samples(config: Config) -> Samples:
    plain, problems = options(config), list[str]()
    if lacks := [key for key in DATA if key not in plain]:
        raise Refused(*(f"the app's configuration lacks {key}" for key in lacks))
    problems += [
        f"{key}={plain[key]!r} must be a whole number of at least 1"
        for key in ("clients", "classes")
        if not whole(plain[key], 1)
    ]
    lists = {key: attempt(problems, lambda key=key: listed(key, plain[key])) for key in ("shape", "mean", "std")}
    shape = lists["shape"] or ()
    if not all(n >= 1 and n == int(n) for n in shape):
        problems.append(f"shape={plain['shape']!r} must be whole numbers, such as '1, 8, 8'")
    if problems:
        raise Refused(*problems)
    mean, std = lists["mean"] or (), lists["std"] or ()
    return Samples(plain["clients"], tuple(int(n) for n in shape), plain["classes"], mean, std)


def listed(key: str, value: Any) -> tuple[float, ...]:
    """Flower's configuration has no lists, so '1, 8, 8' is one."""
    try:
        return tuple(float(word) for word in str(value).split(","))
    except ValueError as error:
        raise Refused(f"{key}={value!r} must be numbers with commas between them") from error


def run_of(config: Config, data: Dataset, split: Split) -> Run:
    given = {key: value for key, value in options(config).items() if key in RUN}
    return Run(**given, data=data, split=split, engine="loop", checkpoint_every=1)


def for_server(config: Config) -> Ready:
    """The server has no samples: blank ones of the agreed shape stand where the size of things is worked out."""
    agreed, plain = samples(config), options(config)
    policy(str(plain.get("policy", "wait")))
    if not positive(plain.get("join_seconds", 1)):
        raise Refused(f"join-seconds={plain['join_seconds']!r} must be a number above 0")
    batch = plain["batch"] if whole(plain.get("batch"), 1) else Run.batch
    y = np.arange(max(agreed.classes, batch)) % agreed.classes
    blank = np.zeros((len(y), *agreed.shape), np.float32)
    data = agreed.dataset(blank, y, blank, y, "sites")
    split = Split(f"sites(clients={agreed.clients})", [np.arange(len(y))] * agreed.clients, int(plain.get("seed", 0)))
    return ready(run_of(config, data, split))


def for_client(config: Config, client: int, data: Dataset, model: Any = None) -> Ready:
    """A site's own samples stand at its own place of the split; nobody else's are here."""
    agreed = samples(config)
    if not 0 <= client < agreed.clients:
        raise Refused(f"client {client} is none of the {agreed.clients} clients of this app")
    run_config = {**config, "model": model} if model is not None else dict(config)
    text = str(run_config.get("model", ""))
    if model is None and ":" in text:
        raise Refused(
            f"model {text!r} names code, and that is never taken from the network; if this site agrees to it, start "
            f"the node with --node-config 'model=\"{text}\"'"
        )
    rows = [np.arange(len(data.y)) if i == client else np.empty(0, np.int64) for i in range(agreed.clients)]
    split = Split(f"sites(clients={agreed.clients})", rows, int(run_config.get("seed", 0)))
    return ready(run_of(run_config, data, split))
