"""Whole runs on every kind of data: what is written of a round equals what is worked out by hand from the model."""

import math

import numpy as np
import pytest
import torch
from test_femnist import split_set
from test_movielens import random_set, written
from test_shakespeare import roles_file

import holdfast
from holdfast.data.bring import import_
from holdfast.data.sets import Column, Dataset
from holdfast.data.splits import Split
from holdfast.evaluate import evaluate
from holdfast.experiment import Run, ready
from holdfast.simulate import State, rounds
from holdfast.task import Batch

DRAW = np.random.default_rng(3)


def store(tmp_path, name, make):
    copy = tmp_path / "copy"
    copy.mkdir()
    make(copy)
    import_(copy, name=name, options={}, data_dir=tmp_path / "store", checked=False)
    return str(tmp_path / "store")


def trained(run):
    made = ready(run)
    state = State.of(made.federation)
    return made.federation, state, list(rounds(made.federation, state, run.rounds))


def logits(fed, state, x):
    batch = Batch(fed.data.prepare(x, state.server.w.dtype), fed.data.test_y[:1], torch.ones(len(x), dtype=torch.bool))
    return fed.task.forward(state.server.w, state.server.buffers, batch).logits


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_clicks_are_ranked(tmp_path, engine):
    """Part C: AUC over all rows by its definition; HR@10 and NDCG@10 by sorting every user's candidates."""
    place = store(tmp_path, "movielens1m", lambda folder: written(folder, *random_set(users=12)))
    run = Run(data="movielens1m", data_dir=place, split="natural(by='user')", model="din", cohort=4, rounds=2, epochs=1,
              lr=0.5, engine=engine, dtype="float64", threads=1)  # fmt: skip
    fed, state, told = trained(run)
    score = logits(fed, state, fed.data.test_x)[:, 0]
    y = fed.data.test_y.bool()
    pairs = score[y][:, None] - score[~y][None, :]
    assert math.isclose(told[-1]["auc"], float((pairs > 0).double().mean() + (pairs == 0).double().mean() / 2))
    user, item = fed.data.columns["user"].test, fed.data.test_x[:, 5]
    places = []
    for u in np.unique(user):
        own = torch.from_numpy(user == u)
        rivals = {int(i): float(s) for i, s, hit in zip(item[own], score[own], y[own], strict=True) if not hit}
        places.append(1 + sum(s > float(score[own & y]) for s in rivals.values()))
    hit = np.array(places) <= 10
    assert math.isclose(told[-1]["hr10"], hit.mean()) and told[-1]["ndcg10_printed"] == told[-1]["hr10"]
    assert math.isclose(told[-1]["ndcg10"], np.mean(hit / np.log2(np.array(places) + 1)))
    # The loss is -log sigmoid((2 y - 1) z), its mean over rows.
    assert math.isclose(told[-1]["loss"], float(torch.log1p(torch.exp(-(2 * y - 1) * score)).mean()), rel_tol=1e-9)
    assert told[0]["train_loss"] != told[1]["train_loss"]


def test_clicks_are_ranked_by_own_models(tmp_path):
    """FedPer: every user's candidates are scored by its own model; the pairs of the AUC are of all users together."""
    place = store(tmp_path, "movielens1m", lambda folder: written(folder, *random_set(users=8)))
    run = Run(data="movielens1m", data_dir=place, split="natural(by='user')", model="din", method="fedper", cohort=4,
              rounds=2, epochs=1, lr=0.5, dtype="float64", threads=1)  # fmt: skip
    fed, state, told = trained(run)
    found, y = [], []
    for i, rows in enumerate(fed.tests):
        if len(rows) and len(fed.clients[i]):
            w = fed.task.layout.place(state.server.w, state.memory.look(i)["private"]["w"])
            x = fed.data.prepare(fed.data.test_x[rows], w.dtype)
            batch = Batch(x, fed.data.test_y[rows], torch.ones(len(rows), dtype=torch.bool))
            found.append(fed.task.forward(w, {}, batch).logits[:, 0])
            y.append(fed.data.test_y[rows].bool())
    score, hit = torch.cat(found), torch.cat(y)
    assert len({tuple(one.tolist()) for one in found}) == len(found) > 1
    pairs = score[hit][:, None] - score[~hit][None, :]
    assert math.isclose(told[-1]["auc"], float((pairs > 0).double().mean() + (pairs == 0).double().mean() / 2))
    ranks = [1 + int((own[~mine].unique() > own[mine]).sum()) for own, mine in zip(found, y, strict=True)]
    assert math.isclose(told[-1]["hr10"], float((np.array(ranks) <= 10).mean()))


def test_engines_agree_on_characters(tmp_path):
    roles = {f"play|R{i}": [f"{'To be, or not to be; '[i:]}" * 60] for i in range(4)}
    place = store(tmp_path, "shakespeare", lambda folder: roles_file(folder, roles))
    common = {"data": "shakespeare", "data_dir": place, "split": "natural(by='role')", "model": "charlstm", "cohort": 2,
              "rounds": 1, "steps": 2, "batch": 4, "dtype": "float64", "threads": 1}  # fmt: skip
    one, many = (trained(Run(**common, engine=engine))[1].server.w for engine in ("loop", "batched"))
    assert torch.allclose(one, many, atol=1e-11) and not torch.equal(one, ready(Run(**common)).federation.task.start)


def test_every_client_is_judged_by_its_own_test_rows(tmp_path):
    """FEMNIST by writer: accuracies by counting, of the server's model and of FedPer's own models."""
    place = store(tmp_path, "femnist", split_set)
    common = {"data": "femnist", "data_dir": place, "split": "natural(by='writer')", "model": "mlp(hidden=8)",
              "rounds": 2, "epochs": 1, "threads": 1, "dtype": "float64"}  # fmt: skip
    many = len(ready(Run(**common, cohort=1)).split.clients)
    fed, state, told = trained(Run(**common, cohort=many))
    right = logits(fed, state, fed.data.test_x).argmax(1) == fed.data.test_y
    own = [float(right[rows].double().mean()) for rows in map(torch.from_numpy, fed.tests) if len(rows)]
    n = [len(rows) for rows in fed.tests if len(rows)]
    assert len(own) > 1 and math.isclose(told[-1]["client_accuracy"], np.mean(own), abs_tol=1e-12)
    assert math.isclose(told[-1]["client_pooled"], np.average(own, weights=n), abs_tol=1e-12)
    assert math.isclose(told[-1]["client_worst_decile"], np.quantile(own, 0.1), abs_tol=1e-12)
    fed, state, told = trained(Run(**common, cohort=many, method="fedper"))
    own = []
    for i, rows in enumerate(fed.tests):
        if len(rows):
            w = fed.task.layout.place(state.server.w, state.memory.look(i)["private"]["w"])
            x, y = fed.data.test_x[rows], fed.data.test_y[rows]
            batch = Batch(fed.data.prepare(x, w.dtype), y, torch.ones(len(y), dtype=torch.bool))
            own.append(float((fed.task.forward(w, {}, batch).logits.argmax(1) == y).double().mean()))
    assert math.isclose(told[-1]["personal_accuracy"], np.mean(own), abs_tol=1e-12)


def test_domains_have_scores_of_their_own():
    x, y = DRAW.normal(size=(90, 5)), DRAW.integers(0, 3, 90)
    test_x, test_y = DRAW.normal(size=(31, 5)), DRAW.integers(0, 3, 31)
    where = np.array([0] * 7 + [1] * 24)
    domain = Column(("photo", "sketch", "unseen"), np.repeat([0, 1, 2], 30), where)
    data = Dataset.of(x, y, test_x, test_y, columns={"domain": domain})
    run = Run(data=data, split="domains(clients_each=1)", model="logreg", cohort=3, rounds=1, threads=1)
    fed, state, told = trained(run)
    assert [set(domain.train[rows]) for rows in fed.clients] == [{0}, {1}, {2}]
    right = (logits(fed, state, fed.data.test_x).argmax(1) == fed.data.test_y).double().numpy()
    by_name = {"photo": right[:7].mean(), "sketch": right[7:].mean()}
    assert told[-1]["domains"] == pytest.approx(by_name)
    assert told[-1]["domain_accuracy"] == pytest.approx(np.mean(list(by_name.values())))
    assert told[-1]["accuracy"] == pytest.approx(right.mean())


def test_held_out_rows_of_the_training_part():
    """Where a split holds test rows out of the training part, they are scored there and trained on nowhere."""
    x, y = DRAW.normal(size=(40, 4)), DRAW.integers(0, 2, 40)
    data = Dataset.of(x, y, x[:5], y[:5], classes=2)
    split = Split("by hand", (np.arange(15), np.arange(20, 32)), 0, (np.arange(15, 20), np.arange(32, 40)), "train")
    fed, state, told = trained(Run(data=data, split=split, model="logreg", cohort=2, rounds=1, threads=1))
    right = (logits(fed, state, fed.data.x).argmax(1) == fed.data.y).double()
    assert told[-1]["client_accuracy"] == pytest.approx(float((right[15:20].mean() + right[32:].mean()) / 2))
    assert evaluate(fed, state)["client_accuracy"] == told[-1]["client_accuracy"]


IMAGES = DRAW.integers(0, 256, (60, 3, 8, 8), dtype=np.uint8)
PICTURES = Dataset.of(IMAGES, np.arange(60) % 4, IMAGES[:10], np.arange(10) % 4)
AUGMENTED = {"data": PICTURES, "split": "iid(clients=5)", "model": "cnn(width=2)", "cohort": 5, "rounds": 2,
             "epochs": 2, "batch": 5, "threads": 1}  # fmt: skip


def test_augmentation_is_the_same_in_every_executor_company_and_padding():
    text = "crop(pad=2) + flip + autoaugment"
    ends = [
        trained(Run(**AUGMENTED, augment=text, engine=engine, lanes=lanes, dtype="float64"))[1].server.w
        for engine, lanes in (("loop", 0), ("batched", 5), ("batched", 2))
    ]
    assert torch.allclose(ends[0], ends[1], atol=1e-11) and torch.allclose(ends[0], ends[2], atol=1e-11)
    plain = trained(Run(**AUGMENTED, dtype="float64"))[1].server.w
    assert (plain - ends[0]).abs().max() > 1e-4


def test_augmentation_resumes_to_the_same_bits(tmp_path):
    options = {**AUGMENTED, "augment": "feddecorr", "checkpoint_every": 1}
    whole = holdfast.run(**options, out=tmp_path / "a")
    holdfast.run(**{**options, "rounds": 1}, out=tmp_path / "b")
    parts = holdfast.run(**options, out=tmp_path / "b", resume=True)
    assert torch.equal(whole.server.w, parts.server.w)


def test_only_training_images_are_augmented_and_every_epoch_anew():
    fed = ready(Run(**AUGMENTED, augment="crop(pad=4)")).federation
    rows, live = torch.arange(5), torch.ones(5, dtype=torch.bool)
    first, again, other = (fed.feed(rows, live, torch.tensor(7), step).x for step in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(fed.plain(rows, live).x, fed.data.prepare(fed.data.x[:5], torch.float32))


def test_constants_of_a_code_base():
    fed = ready(Run(**AUGMENTED, normalize="fl_simulator_cifar10")).federation
    # methods-local 3.1: (x/255 - .491)/.247 in the first channel.
    wanted = (IMAGES[0, 0].astype(float) / 255 - 0.491) / 0.247
    assert np.allclose(fed.plain(torch.tensor([0]), torch.tensor([True])).x[0, 0], wanted, atol=1e-5)


@pytest.mark.parametrize("drift", ["both", "period"])
def test_clients_without_test_rows_are_judged_by_their_class_shares(drift):
    """By loops: every class's recall, weighed by how often the client has it; a class that nobody tests is left out."""
    x, y = DRAW.normal(size=(60, 4)), np.repeat([0, 1, 2, 3], 15)
    test_x, test_y = DRAW.normal(size=(41, 4)), DRAW.integers(0, 3, 41)
    data = Dataset.of(x, y, test_x, test_y, classes=4)
    rows = (np.arange(0, 25), np.arange(25, 47), np.arange(47, 60), np.zeros(0, dtype=np.int64))
    split = Split("by hand", rows, 0)  # the third holds class 3 alone, the fourth nothing: neither can be judged
    run = Run(data=data, split=split, model="logreg", cohort=2, rounds=2, epochs=1, drift=drift, threads=1)
    fed, state, told = trained(run)
    right = (logits(fed, state, fed.data.test_x).argmax(1) == fed.data.test_y).double().numpy()
    recall = [right[test_y == c].mean() for c in range(3)]
    own, n = [], []
    for client in rows[:2]:
        held = [c for c in y[client] if c < 3]
        own.append(np.mean([recall[c] for c in held]))
        n.append(len(held))
    assert told[-1]["client_accuracy"] == pytest.approx(np.mean(own), abs=1e-12)
    assert told[-1]["client_pooled"] == pytest.approx(np.average(own, weights=n), abs=1e-12)
    assert told[-1]["client_sd"] == pytest.approx(np.std(own), abs=1e-12)
    assert told[-1]["client_worst_decile"] == pytest.approx(np.quantile(own, 0.1), abs=1e-12)


def test_clients_that_are_made_when_they_come_are_not_judged_one_by_one():
    run = Run(data="synthetic(clients=50)", split="own", model="logreg", cohort=3, rounds=1, epochs=1, threads=1)
    told = trained(run)[2][-1]
    assert "accuracy" in told and not any(key.startswith("client_") for key in told)
