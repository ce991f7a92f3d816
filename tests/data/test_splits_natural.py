"""Clients that the data has already: writers, users, domains, corruptions, lists in a file."""

import json

import numpy as np
import pytest
from shared import needs_shared, unpacked

from holdfast.data.dealing import Samples
from holdfast.data.sets import Column
from holdfast.data.splits import Split, make
from holdfast.errors import Refused

RNG = np.random.default_rng(0)
NONE = np.zeros(0, dtype=np.int64)
SIZES = [30, 1, 2, 25, 0, 12, 30]  # of seven writers; one has only test rows
WRITER = RNG.permutation(np.repeat(np.arange(7), SIZES))
TESTS = np.array([0, 0, 3, 4, 6])
NAMES = tuple("abcdefg")
LABELS = RNG.integers(0, 10, 100)
POOL = Samples(LABELS, 10, {"writer": Column(NAMES, WRITER, NONE)})
PARTED = Samples(LABELS, 10, {"writer": Column(NAMES, WRITER, TESTS)}, np.zeros(5, dtype=np.int64))


def split(name: str, samples: Samples = POOL, seed: int = 0, **options) -> Split:
    return make(name, options, samples, seed, "text")


def refused(name: str, samples: Samples = POOL, **options) -> str:
    with pytest.raises(Refused) as caught:
        split(name, samples, **options)
    return str(caught.value)


def lists(rows):
    return [own.tolist() for own in rows]


def test_writers_with_their_own_test_rows():
    made = split("natural", PARTED, by="writer")
    wanted = [np.flatnonzero(i == WRITER).tolist() for i in range(7) if SIZES[i]]
    assert lists(made.clients) == wanted and lists(made.tests) == [[0, 1], [], [], [2], [], [4]]
    assert made.tests_from == "test" and split("natural", PARTED).hash == made.hash  # the only column needs no name


def test_a_pool_is_cut_as_leaf_cuts_it():
    # LEAF, data/utils/split_data.py: max(1, int(.9 n)) rows to train, of two rows one, clients without both dropped.
    made = split("natural", by="writer")
    writers = [i for i in range(7) if SIZES[i] > 1]
    assert [len(rows) for rows in made.clients] == [max(1, int(0.9 * n)) if n > 2 else 1 for n in SIZES if n > 1]
    for writer, own, test in zip(writers, made.clients, made.tests, strict=True):
        assert np.array_equal(np.sort([*own, *test]), np.flatnonzero(writer == WRITER))
    assert made.tests_from == "train" and made.hash != split("natural", seed=1).hash
    assert split("natural", train=1).tests == () and len(split("natural", train=1).clients) == 6
    assert [len(rows) for rows in split("natural", PARTED, train=0.5).tests] == [15, 1, 13, 6, 15]


def test_in_time_with_a_gap():
    # B3: 'first 90 % train, then a gap of 79 windows, then test'. 200 and 60 windows: 180 + 20 and 54 + 6 rows, so a
    # gap of 7 leaves 13 rows, and none of the second role's 6, which is dropped as in LEAF.
    role = np.repeat([0, 1], [200, 60])
    samples = Samples(np.zeros(260, dtype=np.int64), 1, {"role": Column(("x", "y"), role, NONE)})
    made = split("natural", samples, order="time", gap=7)
    assert lists(made.clients) == [list(range(180))] and lists(made.tests) == [list(range(187, 200))]
    assert "none of 2 clients would have a test row" in refused("natural", samples, order="time", gap=79)
    assert "gap=7 means nothing with order='random'" in refused("natural", samples, gap=7)
    assert "has its own test rows" in refused("natural", PARTED, order="time")


def test_leafs_sampling():
    # LEAF, sample.py: users in random order until int(fraction n) samples, the last cut to its first ones.
    whole = {i: np.flatnonzero(i == WRITER) for i in range(7)}
    for seed in range(10):
        made = split("natural", seed=seed, fraction=0.4, train=1)
        assert sum(map(len, made.clients)) == 40
        cut = 0
        for rows in made.clients:
            own = whole[int(WRITER[rows[0]])]
            assert np.array_equal(rows, own[: len(rows)])
            cut += len(rows) < len(own)
        assert cut <= 1
    assert len({split("natural", seed=s, fraction=0.4, train=1).hash for s in range(10)}) > 1
    # FedFFT: 20 % of the devices. Half of six writers.
    assert len(split("natural", fraction=0.5, fraction_of="clients", train=1).clients) == 3
    assert len(split("natural", min_samples=12, train=1).clients) == 4
    assert "the largest of 7 clients has 30" in refused("natural", min_samples=31)


def test_thousands_of_writers():
    # 3,400 writers of 800,000 samples, FEMNIST's numbers; seconds, seen by the duration of this test.
    writer = RNG.integers(0, 3400, 800_000)
    tests = RNG.integers(0, 3400, 80_000)
    labels, names = writer % 62, tuple(map(str, range(3400)))
    samples = Samples(labels, 62, {"writer": Column(names, writer, tests)}, tests % 62)
    made = split("natural", samples, by="writer")
    assert len(made.clients) == len(made.tests) == 3400
    assert np.array_equal(np.bincount(writer), [len(rows) for rows in made.clients])
    assert (made.counts(labels, 62) > 0).sum() == 3400  # every writer here writes one character
    assert split("natural", samples, by="writer", train=0.9).summary(labels, 62)["test_rows"] > 75_000


def test_columns_that_are_not_there():
    assert "the data has no column of ids" in refused("natural", Samples(LABELS, 10), by="writer")
    assert "did you mean writer? known: writer" in refused("natural", by="writr")
    two = Samples(LABELS, 10, {key: POOL.columns["writer"] for key in ("writer", "role")})
    assert "name one by by='...'" in refused("natural", two)
    problems = refused("natural", by=3, fraction=1.5, train=0, order="late", gap=-1, min_samples=0, fraction_of="x")
    assert len(problems.splitlines()) == 7


def test_leave_one_out():
    # B3, MovieLens: 'sort by user and time; last interaction is the test item'. User b has one row and is dropped.
    user = np.array([2, 0, 0, 1, 2, 0, 2])
    samples = Samples(np.zeros(7, dtype=np.int64), 2, {"user": Column(("a", "b", "c"), user, NONE)})
    made = split("leave_one_out", samples)
    assert lists(made.clients) == [[1, 2], [0, 4]] and lists(made.tests) == [[5], [6]] and made.tests_from == "train"
    assert "take natural(by='writer')" in refused("leave_one_out", PARTED, by="writer")
    assert "no writer has so many" in refused("leave_one_out", by="writer", min_samples=31)


def test_domains():
    domain, tests = np.repeat([0, 1, 2], [40, 50, 10]), np.repeat([0, 1, 2], [4, 5, 1])
    samples = Samples(LABELS, 10, {"domain": Column(("art", "photo", "sketch"), domain, tests)}, np.zeros(10, int))
    made = split("domains", samples)
    assert [np.sort(rows).tolist() for rows in made.clients] == [np.flatnonzero(domain == d).tolist() for d in range(3)]
    assert [sorted(rows.tolist()) for rows in made.tests] == [[0, 1, 2, 3], [4, 5, 6, 7, 8], [9]]
    each = split("domains", samples, clients_each=5)
    assert [len(rows) for rows in each.clients] == [8] * 5 + [10] * 5 + [2] * 5
    assert all(len(set(domain[rows])) == 1 for rows in each.clients)
    assert np.array_equal(np.sort(np.concatenate(each.clients)), np.arange(100))
    assert "sketch has 10" in refused("domains", samples, clients_each=11)


def corrupted(images: int, kinds: int, twice: bool) -> Samples:
    """Every image with every corruption, or each with one."""
    image = np.repeat(np.arange(images), kinds) if twice else np.arange(images)
    kind = np.tile(np.arange(kinds), images) if twice else np.arange(images) % kinds
    columns = {"corruption": (tuple(map(str, range(kinds))), kind), "image": (tuple(map(str, range(images))), image)}
    made = {key: Column(names, part, NONE) for key, (names, part) in columns.items()}
    return Samples(image % 10, 10, made)


def test_corruptions_of_every_image():
    # B3: 'split images IID over clients, then draw for each client 2 or 3 types without replacement and a type per
    # image'. 15 types, 100 clients; 20 images a client and two types: one is missed in 2 / 2^20 of cases.
    samples = corrupted(2000, 15, True)
    image, kind = samples.columns["image"].train, samples.columns["corruption"].train
    made = split("corruptions", samples, clients=100)
    assert np.array_equal(np.sort(image[np.concatenate(made.clients)]), np.arange(2000))
    many = [len(set(kind[rows])) for rows in made.clients]
    assert {len(rows) for rows in made.clients} == {20} and set(many) == {2, 3}
    assert 30 < many.count(2) < 70  # of 100 fair draws, four standard deviations
    assert set(kind[np.concatenate(made.clients)]) == set(range(15))
    assert {len(set(kind[rows])) for rows in split("corruptions", samples, clients=50, types=4).clients} <= {3, 4}


def test_corruptions_of_images_that_have_one_each():
    samples = corrupted(3000, 15, False)
    kind = samples.columns["corruption"].train
    made = split("corruptions", samples, clients=100, types=2)
    assert np.array_equal(np.sort(np.concatenate(made.clients)), np.arange(3000))
    assert all(len(set(kind[rows])) == 2 for rows in made.clients)
    holders = [[int((kind[rows] == k).sum()) for rows in made.clients if (kind[rows] == k).any()] for k in range(15)]
    assert all(max(own) - min(own) <= 1 for own in holders)
    assert "more than the 15 corruptions" in refused("corruptions", samples, types=(2, 16))
    assert "types=(3, 2)" in refused("corruptions", samples, types=(3, 2))


def test_an_image_that_lacks_a_corruption_is_refused():
    # Only the first of 200 images has the third corruption, and a client that draws all three wants it for a third.
    samples = corrupted(200, 3, True)
    kept = (samples.columns["corruption"].train < 2) | (samples.columns["image"].train == 0)
    columns = {key: Column(c.names, c.train[kept], NONE) for key, c in samples.columns.items()}
    lacking = Samples(np.zeros(int(kept.sum()), dtype=np.int64), 1, columns)
    assert "images lack the corruption" in refused("corruptions", lacking, types=3, clients=1)


@needs_shared
def test_the_writers_of_leafs_sample():
    # ../shared/data/README.md: 190 writers, 105 with both parts (14,640 + 1,677 images), 85 with a test part only.
    held = unpacked("femnist_leaf_sample")
    train, names = held["split"] == 0, tuple(map(str, held["writers"]))
    ids = held["writer"].astype(np.int64)
    samples = Samples(held["y"][train], 62, {"writer": Column(names, ids[train], ids[~train])}, held["y"][~train])
    made = split("natural", samples, by="writer")
    assert len(made.clients) == 105 and sum(map(len, made.clients)) == 14_640 and sum(map(len, made.tests)) == 1677


@pytest.mark.parametrize("suffix", ["txt", "csv", "npy"])
def test_a_file_of_ids(tmp_path, suffix):
    path = tmp_path / f"ids.{suffix}"
    ids = np.array(["bo", "al", "bo", "cy"])
    if suffix == "npy":
        np.save(path, ids)
    else:
        path.write_text("\n".join(ids) + "\n")
    samples = Samples(np.zeros(4, dtype=np.int64), 1)
    assert lists(split("listed", samples, path=str(path)).clients) == [[1], [0, 2], [3]]
    assert "4 ids, the data 100 samples" in refused("listed", path=str(path))


def test_a_file_of_lists(tmp_path):
    path = tmp_path / "lists.json"
    for stored in ([[5, 3], [99]], {"x": [5, 3], "y": [99]}):
        path.write_text(json.dumps(stored))
        assert lists(split("listed", path=str(path)).clients) == [[5, 3], [99]]
    bad = [([[5], []], "client 1 holds"), ([[100]], "rows 0 to 99"), ([], "neither a list"), (3, "neither a list")]
    for stored, reason in bad:
        path.write_text(json.dumps(stored))
        assert reason in refused("listed", path=str(path)) and str(path) in refused("listed", path=str(path))
    path.write_text("[[1")
    assert "cannot use" in refused("listed", path=str(path))
    assert "there is no such file" in refused("listed", path=str(tmp_path / "none.json"))


def test_fedgloss_lists(tmp_path):
    # The layout of github.com/pietrocagnasso/fedgloss, data/cifar10/data/train/federated_train_alpha_*.json (split E).
    path = tmp_path / "federated_train_alpha_0.00.json"
    users = {"7": [4, 9], "2": [1]}
    data = {name: {"x": [f"img_{i}_label_{LABELS[i]}.png" for i in rows]} for name, rows in users.items()}
    path.write_text(json.dumps({"users": [7, 2], "num_samples": [2, 1], "users_data": data}))
    assert lists(split("listed", path=str(path)).clients) == [[4, 9], [1]]
    other = Samples((LABELS + 1) % 10, 10)
    assert "row 4 has another label in this data" in refused("listed", other, path=str(path))
    path.write_text(path.read_text().replace("img_9", "pic_9"))
    assert "client 7 has images that are not named" in refused("listed", path=str(path))
    path.write_text(json.dumps({"users": [1], "users_data": {}}))
    assert "no 'users' with 'users_data'" in refused("listed", path=str(path))
