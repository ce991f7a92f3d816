"""Rounds over real messages: equal to the loop, checked before use, and with what goes wrong at a node."""

import pytest

pytest.importorskip("flwr", reason="needs the extra: pip install holdfast[flower]", exc_type=ImportError)

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from nodes import FIVE, RECIPE, SPLIT, Nodes, config

import holdfast as hf
from holdfast import checkpoint
from holdfast.errors import Failed, Refused
from holdfast.flower import wire
from holdfast.flower.memory import NEVER, Store
from holdfast.flower.policy import Policy, policy
from holdfast.flower.post import Post
from holdfast.flower.recipe import for_client, for_server
from holdfast.flower.server import serve
from holdfast.report.gather import load
from holdfast.report.notes import left_out

QUIET = lambda text: None  # noqa: E731


@cache
def loop(method, **more):
    return hf.run(method=method, data="digits", split=SPLIT, engine="loop", **{**RECIPE, **more}).server


def weights(out):
    return checkpoint.load(Path(out) / "checkpoint").tree["server"]["w"]  # type: ignore[union-attr]


def same(a, b):
    return float((a - b).abs().max()) <= 1e-6


@pytest.mark.parametrize("method", [*FIVE, "fedper"])
def test_rounds_are_those_of_the_loop(method, tmp_path):
    """Two clients of three a round, so that the memory of one that is not asked has to stay."""
    told = config(method, tmp_path / "run")
    rows = serve(Nodes(told), told, [], QUIET)
    assert same(weights(tmp_path / "run"), loop(method).w)
    assert [row["round"] for row in load(tmp_path / "run").metrics] == [1, 2, 3]
    assert ("accuracy" in rows[-1]) == (method != "fedper")


def test_private_head_stays_at_home(tmp_path):
    """FedPer: what a client sends is zero where the head is, in the update and wherever else a whole vector goes."""
    told = config("fedper", tmp_path / "run")
    nodes = Nodes(told)
    serve(nodes, told, [], QUIET)
    layout = for_server(told).federation.task.layout
    assert layout.private
    kept = 0
    for _, reply in nodes.sent:
        assert set(reply.content) <= {"tree", "told"}
        for name, sent in reply.content.array_records.get("tree", {}).items():
            t = torch.from_numpy(sent.numpy())
            if t.shape == (layout.length,):
                assert not layout.own(t).any(), name
                kept += 1
    assert kept == 6  # two clients, three rounds, one vector each
    assert any(len(c.state.array_records) for c in nodes.contexts.values())


def test_restarted_nodes_and_server_go_on(tmp_path):
    """SCAFFOLD: state folders outlive the nodes, the checkpoint outlives the server, in the middle of a round."""
    told = config("scaffold", tmp_path / "run")

    def die(round, kind, client, reply):
        if round == 2 and kind == "train" and client == max(asked):
            raise KeyboardInterrupt  # as if killed while an answer, already remembered at its site, is on the way
        return reply

    asked = [int(m) for m in hf.data.plan.sample(0, 1, 3, 2)]
    with pytest.raises(KeyboardInterrupt):
        serve(Nodes(told, die, tmp_path), told, [], QUIET)
    rows = serve(Nodes(told, states=tmp_path), told, [], QUIET)
    assert [row["round"] for row in rows] == [1, 2, 3] and not any("lost_memory" in row for row in rows)
    assert same(weights(tmp_path / "run"), loop("scaffold").w)


def test_another_recipe_does_not_go_on_with_a_run(tmp_path):
    told = config("fedavg", tmp_path / "run", rounds=1)
    serve(Nodes(told), told, [], QUIET)
    before = weights(tmp_path / "run")
    for key, value in (("lr", 0.1), ("method", "scaffold"), ("seed", 1)):
        other = told | {key: value, "rounds": 2}
        with pytest.raises(Refused, match=key):
            serve(Nodes(other), other, [], QUIET)
    assert torch.equal(weights(tmp_path / "run"), before)


def test_lost_memory_is_told(tmp_path):
    told = config("scaffold", tmp_path / "run", cohort=3, rounds=1)
    serve(Nodes(told), told, [], QUIET)
    rows = serve(Nodes(more := told | {"rounds": 2}), more, [], QUIET)  # other nodes, without a state folder
    assert rows[-1]["lost_memory"] == [0, 1, 2]


def broken(how):
    """Client 1 in round 2 sends something else."""

    def spoil(round, kind, client, reply):
        if (round, kind, client) != (2, "train", 1):
            return reply
        return how(reply)

    return spoil


def with_delta(value):
    def change(reply):
        tree = reply.content.array_records["tree"]
        tree["delta"] = Array(value(tree["delta"].numpy()))
        return reply

    return change


def empty(reply):
    del reply.content["tree"]
    return reply


FAULTS = {
    "is not finite": with_delta(lambda a: a * np.float32("nan")),
    "of shape (7,)": with_delta(lambda a: a[:7]),
    "of type float64": with_delta(lambda a: a.astype(np.float64)),
    "sent no tensors": empty,
    "no answer in 0.5 s": lambda reply: None,
}


@pytest.mark.parametrize("reason", FAULTS)
@pytest.mark.parametrize("rule", ["deadline(seconds=0.5)", "quorum(n=2, seconds=0.5)"])
def test_bad_answers_are_left_out_and_named(reason, rule, tmp_path):
    """And the round counts as if client 1 had not been asked: its memory of SCAFFOLD stays that of round 1."""
    told = config("scaffold", tmp_path / "run", cohort=3, policy=rule, rounds=3)
    rows = serve(Nodes(told, broken(FAULTS[reason])), told, [], QUIET)
    assert list(rows[1]["missing"]) == ["1"] and reason in rows[1]["missing"]["1"]
    assert rows[1]["trained"] == 2 and rows[2]["trained"] == 3 and "lost_memory" not in rows[2]
    assert any("client 1: " in text and reason in text for text in left_out([load(tmp_path / "run")]))


def test_dropping_is_what_a_simulation_does(tmp_path):
    """Of a client whose answer is not finite; `Memory` and `absorb` go on as if it had not been asked."""
    told = config("scaffold", tmp_path / "run", cohort=3, policy="drop(seconds=1)", rounds=3)
    nan = FAULTS["is not finite"]
    serve(Nodes(told, broken(nan)), told, [], QUIET)
    late = tmp_path / "late"
    more = told | {"out": str(late), "policy": "deadline(seconds=0.5)"}
    serve(Nodes(more, broken(lambda reply: None)), more, [], QUIET)
    assert torch.equal(weights(tmp_path / "run"), weights(late))
    assert not same(weights(late), loop("scaffold", cohort=3).w)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("wait", "round 2: client 1: .* is not finite; mend it"),
        ("quorum(n=3)", "2 of the 3 answers that policy quorum"),
    ],
)
def test_a_round_that_cannot_count_ends_the_run(rule, said, tmp_path):
    told = config("fedavg", tmp_path / "run", cohort=3, policy=rule)
    with pytest.raises(Failed, match=said):
        serve(Nodes(told, broken(FAULTS["is not finite"])), told, [], QUIET)
    rows = serve(Nodes(told), told, [], QUIET)  # mended, it goes on after round 1
    assert len(rows) == 3 and same(weights(tmp_path / "run"), loop("fedavg", cohort=3).w)


def test_places_are_positions_in_the_list_of_keys(tmp_path):
    """What a node says of itself counts for nothing then, and one that is not listed is not asked."""
    told = config("fedavg", tmp_path / "run")
    nodes, said = Nodes(told), []
    keys = {100: b"b", 101: b"c", 102: b"nobody's"}
    nodes.get_nodes = lambda: [type("N", (), {"node_id": i, "public_key": k}) for i, k in keys.items()]  # type: ignore
    post = Post(nodes, [b"a", b"b\n", b"c"], 3, said.append)
    post.look()
    assert post.nodes == {1: 100, 2: 101} and "node 102 is none of the 3 sites" in said[0] and not nodes.sent


def test_policies_are_read():
    assert policy("quorum(n=2, seconds=5)") == Policy("quorum", 5, 2)
    assert policy("deadline(seconds=9)").seconds == 9 and policy("wait").patient
    for text, said in (
        ("hope", "there are wait, drop"), ("quorum", "needs n"), ("drop(n=2)", "drop has no 'n'"),
        ("quorum(n=0)", "at least 1"), ("deadline(seconds=-1)", "above 0"), ("__import__('os')", "__import__"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=re.escape(said)):
            policy(text)


def test_nested_trees_come_back_as_they_were():
    tree = {"sent": {"delta": {"index": torch.tensor([3, 1]), "value": torch.tensor([0.5, 2.0])}}, "empty": {}}
    back = wire.unpacked(wire.packed(tree), tree, "x")
    assert back["empty"] == {} and torch.equal(back["sent"]["delta"]["index"], torch.tensor([3, 1]))
    scalar = wire.unpacked(wire.packed({"s": torch.tensor(2.0)}), {"s": torch.tensor(0.0)}, "x")["s"]
    assert scalar.shape == () and scalar == 2


def test_arrays_that_lie_are_refused():
    """By size before they are read, by their bytes after; objects, which NumPy would pickle, never."""
    like = {"w": torch.zeros(3)}
    good = Array(np.zeros(3, np.float32))
    big = Array("float32", (3,), "numpy.ndarray", good.data + b"x" * 2000)
    other = Array("float32", (3,), "numpy.ndarray", Array(np.zeros(4, np.float32)).data)
    torn = Array("float32", (3,), "numpy.ndarray", good.data[:-4])
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    pickled = head + b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }".ljust(117) + b"\n" + b"cos\nsystem\n"
    objects = Array("float32", (3,), "numpy.ndarray", pickled)
    foreign = Array("float32", (3,), "pickle", good.data)
    for sent, said in (
        (big, "bytes; it can have"), (other, "claimed to be"), (torn, "cannot be read"),
        (objects, "cannot be read: Object arrays cannot be loaded"), (foreign, "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=re.escape(said)):
            wire.unpacked(ArrayRecord({"w": sent}), like, "x")
    with pytest.raises(Refused) as told:
        wire.unpacked(ArrayRecord({"v": good}), like, "client 2")
    assert told.value.problems == ("client 2 sent 'v', which nobody asked for", "client 2 sent no 'w'")


def test_method_and_model_from_the_network_are_parsed(tmp_path):
    """Text that is code is refused at the site, and a model of a module only its own configuration can name."""
    told = config("fedavg", tmp_path)
    data = for_server(told).federation.data
    with pytest.raises(Refused, match="never taken from the network"):
        for_client(told | {"model": "os:system"}, 0, data)
    with pytest.raises(Refused, match="__import__"):
        for_client(told | {"method": "__import__('os').system('true')"}, 0, data)
    with pytest.raises(Refused, match="has no 'metod'"):
        for_client(told | {"metod": "fedavg"}, 0, data)


def test_memory_of_rounds_that_did_not_count_is_not_used(tmp_path):
    """Rounds 0 and 1 counted, the answer of round 2 came too late: the client goes on from round 1."""
    for own in ({}, {"state": str(tmp_path)}):
        store = Store(Context(1, 1, own, RecordDict(), {}), "0" * 16, 0)  # type: ignore[arg-type]
        fresh = {"scaffold": {"c": torch.zeros(2)}}
        for round, counted in ((0, NEVER), (1, 0), (2, 1), (3, 1)):
            store.put(round, counted, {"scaffold": {"c": torch.full((2,), float(round + 1))}})
        assert store.at(1, fresh)[0]["scaffold"]["c"].tolist() == [2, 2]
        assert store.at(NEVER, fresh) == (fresh, True)
        assert store.at(2, fresh) == (fresh, False)  # the server says what never was
        with pytest.raises(Refused, match="hexadecimal"):
            Store(Context(1, 1, own, RecordDict(), {}), "../../x", 0)  # type: ignore[arg-type]


def test_records_of_other_kinds_are_refused():
    cases: list[dict[str, Any]] = [{"round": "1"}, {"round": True}, {}]
    for told in cases:
        message = Message(RecordDict({"told": ConfigRecord(told), "m": MetricRecord({"round": 1})}), 1, "train")
        with pytest.raises(Refused, match="must be a int"):
            wire.value(message, "round", int, "x")
