"""Questions to nodes and their answers, in a bounded time. Which client a node is, its key says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from holdfast.errors import Failed, Refused
from holdfast.flower import wire
from holdfast.flower.policy import Policy

GONE = 5  # Flower's ErrorCode.NODE_UNAVAILABLE
LATE = (3, 4)  # a message or its answer that is no longer there
HELLO = 60.0  # seconds for a node to say which place is its own
PAUSES = (0.05, 1.0)  # seconds between two looks for answers, growing from the one to the other
SILENT = "no answer in {:g} s"
T = TypeVar("T")


class Post:
    """Nodes by their place: the position of their public key in `keys`. Only without any keys, as in a simulation,
    a node's own word is taken."""

    def __init__(self, grid: Grid, keys: Sequence[bytes], clients: int, tell: Callable[[str], None]):
        self.grid, self.keys, self.clients, self.tell = grid, list(keys), clients, tell
        self.nodes: dict[int, int] = {}  # client -> node id, of those that are connected
        self.places: dict[int, int] = {}  # node id -> client; -1 for one that is not to be asked

    def look(self) -> None:
        """Who is connected now."""
        found = {node.node_id: bytes(node.public_key) for node in self.grid.get_nodes()}
        new = [node for node in found if node not in self.places]
        if self.keys:
            places = {key.strip(): i for i, key in enumerate(self.keys)}
            self.places |= {node: places.get(found[node].strip(), -1) for node in new}
        elif new:
            self.places |= self.said(new)
        for node in new:
            if not 0 <= self.places[node] < self.clients:
                self.tell(f"node {node} is none of the {self.clients} sites of this app: nothing is sent to it")
                self.places[node] = -1
        self.nodes = {self.places[node]: node for node in sorted(found) if self.places[node] >= 0}

    def said(self, nodes: Sequence[int]) -> dict[int, int]:
        """Their own word for their place, the `partition-id` of their configuration."""
        asked = [Message(wire.content(), node, "query", ttl=HELLO) for node in nodes]
        found = {}
        for reply in self.grid.send_and_receive(asked, timeout=HELLO):
            try:
                found[reply.metadata.src_node_id] = wire.value(reply, "place", int, "a node")
            except (Refused, ValueError) as error:
                self.tell(f"node {reply.metadata.src_node_id}: {error}")
        return {node: found[node] for node in nodes if node in found}

    def meet(self, seconds: float, policy: Policy) -> None:
        """Waits until all are connected; after `seconds` all but a patient policy begin with those who are."""
        end, told = time.monotonic() + seconds, -1
        while True:
            self.look()
            many = len(self.nodes)
            if many == self.clients:
                return
            if many != told:
                self.tell(f"{many} of {self.clients} sites are connected")
                told = many
            if time.monotonic() > end and not policy.patient:
                if many < policy.n:
                    raise Failed(f"{many} of {self.clients} sites connected in {seconds:g} s; {policy.n} are needed")
                return
            time.sleep(PAUSES[1])

    def ask(
        self, kind: str, round: int, contents: Mapping[int, RecordDict], policy: Policy,
        read: Callable[[Message, str], T],
    ) -> tuple[dict[int, T], dict[int, str]]:  # fmt: skip
        """What `read` makes of each client's answer, and why the others have none that can be used."""
        answers, missing = dict[int, T](), dict[int, str]()
        flying: dict[str, tuple[int, float]] = {}  # message -> client, and when it is too late for an answer
        pause = PAUSES[0]
        waiting = set(contents)
        while waiting:
            self.look()
            sent = {i for i, _ in flying.values()}
            now = {i: contents[i] for i in sorted(waiting - sent) if i in self.nodes}
            flying |= self.send(kind, round, now, policy.seconds)
            for reply in self.grid.pull_messages(list(flying)) if flying else ():
                i, end = flying.pop(reply.metadata.reply_to_message_id)
                try:
                    answers[i] = self.opened(reply, i, read)
                except Again as why:
                    if not policy.patient:
                        # Flower throws a message away when its time is over, by its own clock.
                        over = why.late and time.monotonic() > end - 2 * PAUSES[1]
                        missing[i] = SILENT.format(policy.seconds) if over else str(why)
                except Refused as refused:
                    missing[i] = "; ".join(refused.problems)
            late = {m: i for m, (i, end) in flying.items() if time.monotonic() > end}
            for message, i in late.items():
                del flying[message]
                if not policy.patient:
                    missing[i] = SILENT.format(policy.seconds)
            sent = {i for i, _ in flying.values()}
            if not policy.patient:
                missing |= {i: "not connected" for i in waiting - sent - {*answers, *missing} if i not in self.nodes}
            waiting -= {*answers, *missing}
            if waiting:
                time.sleep(pause)
                pause = min(1.3 * pause, PAUSES[1])
        return answers, missing

    def send(
        self, kind: str, round: int, contents: Mapping[int, RecordDict], seconds: float
    ) -> dict[str, tuple[int, float]]:
        if not contents:
            return {}
        made = [
            Message(what, self.nodes[i], kind, ttl=seconds, group_id=str(round + 1)) for i, what in contents.items()
        ]
        end = time.monotonic() + seconds
        ids = self.grid.push_messages(made)
        return {message: (i, end) for message, i in zip(ids, contents, strict=True) if message}

    def opened(self, reply: Message, client: int, read: Callable[[Message, str], Any]) -> Any:
        if reply.has_error():
            code, reason = reply.error.code, " ".join((reply.error.reason or "no reason given").split())[-300:]
            if code == GONE:
                raise Again("gone: its node is not connected any more")
            if code in LATE:
                raise Again(f"its answer did not come whole: {reason}", late=True)
            raise Refused(f"its app failed: {reason}")
        if said := wire.problem(reply):
            raise Refused(said)
        return read(reply, f"client {client}")


class Again(Exception):
    """No answer, through nobody's fault: worth another question."""

    def __init__(self, why: str, late: bool = False):
        super().__init__(why)
        self.late = late
