"""The server's side: `cast`, the nodes' answers, `absorb`; every round kept before the next one begins."""

from __future__ import annotations

import contextlib
import secrets
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.superlink.grid import InMemoryGrid
from torch import Tensor

from holdfast import diagnose
from holdfast.data.plan import root, sample
from holdfast.errors import Failed, Refused
from holdfast.experiment import Ready
from holdfast.flower import wire
from holdfast.flower.folder import begun, kept
from holdfast.flower.policy import Policy, policy
from holdfast.flower.post import Post
from holdfast.flower.recipe import for_server, options
from holdfast.folder import alone
from holdfast.live import line
from holdfast.personal import spread
from holdfast.round import Down, Up, absorb, cast
from holdfast.rows import marked, plain
from holdfast.simulate import Federation, Row, State, figures, gather, shown
from holdfast.vector import mapped

LOG = "server.log"
JOIN = 120.0  # seconds for all sites to connect


def server_app(keys: Path | None = None) -> ServerApp:
    """The app of the server. `keys` is the allow-list: a client is the position of its key in it."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        tell = partial(note, context.run_config.get("out"))
        try:
            serve(grid, context.run_config, listed(keys), tell)
        except (Refused, Failed) as error:  # Flower shows a traceback; here is the sentence
            tell(f"stopped: {error}")
            raise

    return app


def note(out: Any, text: str) -> None:
    """For whoever reads Flower's log of the run, and into the run's folder."""
    print(f"holdfast: {text}", flush=True)
    if out:
        folder = Path(str(out)).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("a") as file:
            file.write(text + "\n")


def listed(path: Path | None) -> list[bytes]:
    """The public keys of `nodes.toml`, in its order."""
    if path is None or not path.is_file():
        return []
    try:
        return [node["key"].encode() for node in tomllib.loads(path.read_text()).get("node", [])]
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{path} is no list of node keys ({error}); write it by holdfast flower keys") from error


@dataclass
class Course:
    """A federation under way."""

    made: Ready
    state: State
    counted: Tensor  # [N] the last round in which a client's answer counted; -1: none yet
    token: str  # by which sites know this federation again
    post: Post
    policy: Policy
    like: Up  # how an answer must be built

    @property
    def fed(self) -> Federation:
        return self.made.federation


def serve(grid: Grid, config: Any, keys: list[bytes], tell: Callable[[str], None]) -> list[Row]:
    """Goes on where `out` stands, until the last round."""
    plain_options = options(config)
    if not plain_options.get("out"):
        raise Refused("the app's configuration has no out, the folder where the server keeps the run")
    if keys and len(keys) != plain_options.get("clients"):
        raise Refused(f"nodes.toml has {len(keys)} keys, and clients={plain_options.get('clients')}; make them agree")
    made = for_server(config)
    folder = Path(str(plain_options["out"])).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        held.enter_context(alone(folder))
        state, counted, token, rows = begun(folder, made, secrets.token_hex(8), tell)
        rules = policy(str(plain_options.get("policy", "wait")))
        keys = [] if isinstance(grid, InMemoryGrid) else keys  # a simulation's nodes have keys of random bytes
        post = Post(grid, keys, len(made.federation.clients), tell)
        course = Course(made, state, counted, token, post, rules, answer(made))
        if state.round < made.run.rounds:
            post.meet(float(plain_options.get("join_seconds", JOIN)), rules)
        while state.round < made.run.rounds:
            row = marked(plain(advance(course)), made.federation.data.classes)
            kept(folder, state, course.counted, row)
            rows.append(row)
            tell(line(row) + missing_text(row))
        tell(f"{state.round} rounds done; kept in {folder}")
        return rows


def answer(made: Ready) -> Up:
    """How a client's answer must be built: one made here, of blank samples."""
    fed = made.federation
    state = State.of(fed)
    down = cast(fed.method.bound(fed.options), state.server, torch.tensor(fed.lr, dtype=state.server.w.dtype))
    ids = sample(fed.seed, 0, len(fed.clients), 1)
    ups, _ = fed.execute(fed.options, down, gather(fed, state, 0, ids), fed.feed)
    return mapped(lambda stack: stack[0], ups)


def advance(course: Course) -> Row:
    fed, state, began = course.fed, course.state, time.perf_counter()
    t, method = state.round, fed.method.bound(fed.options)
    ids = sample(fed.seed, t, len(fed.clients), fed.cohort).tolist()
    lr = fed.lr * fed.lr_decay**t
    down = cast(method, state.server, torch.tensor(lr, dtype=state.server.w.dtype))
    got, missing = train(course, t, ids, down)
    course.policy.judge(t + 1, got, missing)
    there = sorted(got)
    ups = mapped(lambda *rows: torch.stack(rows), *(got[i][0] for i in there))
    population = torch.tensor(float(len(fed.clients)), dtype=state.server.w.dtype)
    server = absorb(
        method, fed.task, state.server, down, ups, torch.tensor(there), population, root(fed.seed), proxy=fed.proxy
    )
    if not diagnose.sound((server.w, server.buffers, server.parts)):
        raise Failed(f"round {t + 1}, at the server: the new model is not finite; start anew with a lower lr")
    state.server = server
    course.counted[torch.tensor(there)] = t
    trained, last = time.perf_counter(), t + 1 == course.made.run.rounds
    row: Row = {"round": t + 1, "lr": lr, **figures(fed, ups, [], ""), **shown(method, server)}
    row |= {"clients": len(ids), "bytes_down": len(ids) * fed.sheet.down}
    row |= {"missing": {str(i): why for i, why in missing.items()}} if missing else {}
    lost = [i for i in there if got[i][1]]
    row |= {"lost_memory": lost} if lost else {}
    if last or (t + 1) % fed.eval_every == 0:
        row |= evaluated(course, t, set(missing))
    return row | {"train_seconds": trained - began, "eval_seconds": time.perf_counter() - trained}


def train(course: Course, t: int, ids: list[int], down: Down) -> tuple[dict[int, tuple[Up, bool]], dict[int, str]]:
    def read(reply: Message, whose: str) -> tuple[Up, bool]:
        if wire.value(reply, "round", int, whose) != t:
            raise Refused(f"{whose} answered for another round")
        return wire.tree(reply, course.like, whose), wire.value(reply, "lost", bool, whose)

    contents = {i: wire.content(down, **told(course, t, i)) for i in ids}
    return course.post.ask("train", t, contents, course.policy, read)


def told(course: Course, t: int, client: int) -> dict[str, Any]:
    return {"round": t, "client": client, "counted": int(course.counted[client]), "token": course.token}


def evaluated(course: Course, t: int, silent: set[int]) -> Row:
    """The new model on every connected site's own test samples: correct over samples, all sites together."""
    fed, server = course.fed, course.state.server
    down = cast(fed.method.bound(fed.options), server, torch.zeros((), dtype=server.w.dtype))._replace(w=server.w)
    ids = [i for i in sorted(course.post.nodes) if i not in silent]
    contents = {i: wire.content(down, **told(course, t, i)) for i in ids}
    found, missing = course.post.ask("evaluate", t, contents, course.policy, score)
    scores = {i: (right / n, float(n)) for i, (n, right, _) in found.items() if n}
    total = sum(n for n, _, _ in found.values())
    row: Row = {"untested": {str(i): why for i, why in missing.items()}} if missing else {}
    if not total:
        return row
    if fed.task.layout.private:
        return row | spread("personal", scores)
    return row | {
        "accuracy": sum(right for _, right, _ in found.values()) / total,
        "loss": sum(loss for _, _, loss in found.values()) / total,
    }


def score(reply: Message, whose: str) -> tuple[int, float, float]:
    n, right = wire.value(reply, "n", int, whose), wire.value(reply, "right", float, whose)
    if n < 0 or not 0 <= right <= n:
        raise Refused(f"{whose} says that {right} of {n} test samples were right")
    return n, right, wire.value(reply, "loss", float, whose)


def missing_text(row: Row) -> str:
    return "".join(f"\n  client {i} left out: {why}" for i, why in row.get("missing", {}).items())
