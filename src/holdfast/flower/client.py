"""A site's side: one client's `begin`, `step` and `finish`, by the same loop that a simulation runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from holdfast.check import reason
from holdfast.errors import Failed, Refused
from holdfast.evaluate import scored
from holdfast.experiment import Ready
from holdfast.flower import wire
from holdfast.flower.memory import Store
from holdfast.flower.recipe import for_client, samples
from holdfast.memory import Memory
from holdfast.round import Down, cast, open_memory, open_server
from holdfast.simulate import State, gather
from holdfast.vector import mapped

SERVER = "the server"


def client_app(site: ModuleType) -> ClientApp:
    """The app of a site. `site` has the functions `train` and `test`; a node's `site-file` stands over it."""
    app = ClientApp()

    @app.query()
    def hello(message: Message, context: Context) -> Message:
        return answered(message, lambda: wire.content(place=int(context.node_config.get("partition-id", -1))))

    @app.train()
    def train(message: Message, context: Context) -> Message:
        return answered(message, lambda: trained(message, context, site))

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return answered(message, lambda: evaluated(message, context, site))

    return app


def answered(message: Message, work: Callable[[], Any]) -> Message:
    """What is wrong here is told to the server in a sentence; Flower would send a traceback."""
    try:
        content = work()
    except (Refused, Failed) as error:
        content = wire.content(problem=str(error))
    return Message(content, reply_to=message)


def trained(message: Message, context: Context, site: ModuleType) -> Any:
    made, client, t = opened(message, context, site)
    fed, method = made.federation, made.federation.method
    counted = wire.value(message, "counted", int, SERVER)
    store = Store(context, wire.value(message, "token", str, SERVER), client)
    down = wire.tree(message, expected(made), SERVER)
    fresh = open_memory(method, fed.task, len(fed.clients))
    own, found = store.at(counted, fresh)
    memory = Memory(fresh)
    memory.store([client], mapped(lambda row: row[None], own))
    cohort = gather(fed, State(open_server(method, fed.task, len(fed.clients)), memory), t, np.array([client]))
    ups, kept = fed.execute(fed.options, down, cohort, fed.feed)
    up, kept = mapped(lambda stack: stack[0], (ups, kept))
    if all(bool(torch.isfinite(row).all()) for _, row in wire.named(kept)):
        store.put(t, counted, kept)
    return wire.content(up, round=t, lost=not found)


def evaluated(message: Message, context: Context, site: ModuleType) -> Any:
    """The model on this site's own test samples; with private tensors, this site's own model."""
    made, client, t = opened(message, context, site)
    fed = made.federation
    down = wire.tree(message, expected(made), SERVER)
    w = down.w
    if fed.task.layout.private:
        fresh = open_memory(fed.method, fed.task, len(fed.clients))
        store = Store(context, wire.value(message, "token", str, SERVER), client)
        own, _ = store.at(wire.value(message, "counted", int, SERVER), fresh)
        w = fed.task.layout.place(w, own["private"]["w"])
    found = scored(fed, w, down.buffers, fed.data.test_x, fed.data.test_y)
    right, loss = float(found.right.double().sum()), float(found.loss.double().sum())
    return wire.content(round=t, n=len(found.right), right=right, loss=loss)


def expected(made: Ready) -> Down:
    """A round's message as it must be built: names, shapes and types."""
    fed = made.federation
    server = open_server(fed.method, fed.task, len(fed.clients))
    return cast(fed.method.bound(fed.options), server, torch.zeros((), dtype=server.w.dtype))


def opened(message: Message, context: Context, site: ModuleType) -> tuple[Ready, int, int]:
    """What this client computes with, which client it is, and the round."""
    client, t = (wire.value(message, key, int, SERVER) for key in ("client", "round"))
    if t < 0:
        raise Refused(f"the server sent round={t}")
    file, model = (context.node_config.get(key) for key in ("site-file", "model"))
    held = site if file is None else named_site(Path(str(file)).expanduser())
    return made_ready(tuple(sorted(context.run_config.items())), client, held, model), client, t


@lru_cache(maxsize=8)
def made_ready(config: tuple[tuple[str, Any], ...], client: int, site: ModuleType, model: str | None) -> Ready:
    """Kept while the process lives: a simulation asks one process for many rounds of many clients."""
    told, agreed = dict(config), samples(dict(config))
    parts = [arrays(site, name, client, agreed.clients) for name in ("train", "test")]
    data = agreed.dataset(*parts[0], *parts[1], name=f"site {client}")
    return for_client(told, client, data, model)


def arrays(site: ModuleType, name: str, client: int, clients: int) -> tuple[Any, Any]:
    call = getattr(site, name, None)
    if not callable(call):
        raise Refused(f"{site.__file__} has no function {name}(site, sites); see docs/flower.md")
    try:
        found = call(client, clients)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{site.__file__}: {name}({client}, {clients}) failed: {reason(error)}") from error
    if not isinstance(found, tuple) or len(found) != 2:
        raise Refused(f"{site.__file__}: {name} must return (x, y), and returned a {type(found).__name__}")
    return found


@lru_cache(maxsize=8)
def named_site(path: Path) -> ModuleType:
    """A site's own file, as its own configuration names it; no path or name ever comes from the network."""
    spec = importlib.util.spec_from_file_location("holdfast_site", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise Refused(f"site-file {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
