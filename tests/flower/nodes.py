"""Nodes in memory: real messages and the real apps of both sides; only Flower's transport is left out."""

from types import ModuleType, SimpleNamespace

from flwr.app import Context, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from holdfast.data.sets import digits
from holdfast.flower.client import client_app
from holdfast.flower.share import test_share as tested
from holdfast.flower.share import train_share

SITES, SPLIT = 3, "dirichlet(alpha=0.5, clients=3)"
FIVE = ("fedavg", "scaffold", "feddyn + specgrad", "fedsmoo", "fedeve + gh")
RECIPE = {"model": "mlp", "rounds": 3, "cohort": 2, "epochs": 1, "batch": 20, "lr": 0.05, "seed": 0}


def config(method, out, **more):
    data = digits()
    agreed = {"clients": SITES, "shape": "1, 8, 8", "classes": 10, "mean": repr(data.mean[0]), "std": repr(data.std[0])}
    return {**RECIPE, **agreed, "method": method, "policy": "wait", "out": str(out), **more}


def site():
    made = ModuleType("site_data")
    made.__file__ = "site_data.py"
    made.train = lambda i, n: train_share("digits", SPLIT, 0, i)  # type: ignore[attr-defined]
    made.test = lambda i, n: tested("digits", SPLIT, 0, i, n)  # type: ignore[attr-defined]
    return made


class Nodes(Grid):
    """`spoil(round, kind, client, reply)` may change an answer, or return None: it never comes."""

    def __init__(self, config, spoil=lambda round, kind, client, reply: reply, states=None):
        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
        self.app, self.spoil, self.box, self.sent = client_app(site()), spoil, {}, []
        own = [{"partition-id": i} | ({"state": str(states / f"{i}")} if states else {}) for i in range(SITES)]
        self.contexts = {100 + i: Context(1, 100 + i, own[i], RecordDict(), config) for i in range(SITES)}  # type: ignore

    def push_messages(self, messages):
        ids = []
        for message in messages:
            ids.append(f"{len(self.sent) + 1}")
            message.metadata.__dict__["_message_id"] = ids[-1]
            context = self.contexts[message.metadata.dst_node_id]
            reply = self.app(message, context)
            self.sent.append((message, reply))
            round, client = int(message.metadata.group_id or 0), int(context.node_config["partition-id"])
            spoiled = self.spoil(round, message.metadata.message_type, client, reply)
            if spoiled is not None:
                self.box[ids[-1]] = spoiled
        return ids

    def pull_messages(self, message_ids):
        return [self.box.pop(i) for i in list(message_ids) if i in self.box]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))

    def get_nodes(self):
        return [SimpleNamespace(node_id=i, public_key=b"") for i in self.contexts]  # type: ignore[return-value]

    def get_node_ids(self):
        return list(self.contexts)

    def create_message(self, *args, **options):
        raise NotImplementedError

    def set_run(self, run):
        pass

    @property
    def run(self):
        raise NotImplementedError
