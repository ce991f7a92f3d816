"""MovieLens-1M from files in its layout made here: the pipeline against lists, and what is refused."""

from collections import Counter

import numpy as np
import pytest
import torch
from loaded import digest, loaded, refused

USERS = ["1::F::1::10::48067", "2::M::56::16::70072", "3::M::25::15::55117-1"]
MOVIES = [
    "1::Toy Story (1995)::Animation",
    "2::Misérables, Les (1995)::Drama",
    *(f"{i}::M{i}::Drama" for i in range(3, 12)),
]
# user, movie, rating, time: user 1 rated 5 and 3 in one second, in this order.
RATINGS = ["1::5::5::100", "1::3::1::100", "1::9::3::50", "2::3::4::7", "2::7::4::6", "3::9::2::9", "3::5::2::8"]


def written(folder, ratings=RATINGS, users=USERS, movies=MOVIES):
    folder = folder / "ml-1m"
    folder.mkdir(exist_ok=True)
    for name, lines in (("ratings.dat", ratings), ("users.dat", users), ("movies.dat", movies)):
        (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode("latin-1"))
    return folder.parent


def test_three_users_by_hand(tmp_path):
    data = loaded("movielens1m", written(tmp_path))
    # Movies in order of first appearance: 5 -> 1, 3 -> 2, 9 -> 3, 7 -> 4. Genders F 1, M 2; ages 1, 2, 3.
    # User 1 in time order: 9, 5, 3 = codes 3, 1, 2; user 2: 7, 3 = 4, 2; user 3: 5, 9 = 1, 3.
    zeros = [0] * 50
    assert data.x[::5].tolist() == [
        [1, 1, 1, 1, 1, 3, *zeros],
        [1, 1, 1, 1, 1, 1, *zeros[1:], 3],
        [2, 2, 2, 2, 2, 4, *zeros],
        [3, 2, 3, 3, 3, 1, *zeros],
    ]
    assert data.test_x[::100].tolist() == [
        [1, 1, 1, 1, 1, 2, *zeros[2:], 3, 1],
        [2, 2, 2, 2, 2, 2, *zeros[1:], 4],
        [3, 2, 3, 3, 3, 3, *zeros[1:], 1],
    ]
    # Only movie code 4 was never rated by user 1, only 1 and 3 by user 2, only 2 and 4 by user 3.
    never = {0: {4}, 1: {1, 3}, 2: {2, 4}}
    user = data.columns["user"]
    assert user.names == ("1", "2", "3") and user.train.tolist() == [0] * 10 + [1] * 5 + [2] * 5
    assert user.test.tolist() == [0] * 100 + [1] * 100 + [2] * 100
    for i, free in never.items():
        rows = data.test_x[i * 100 + 1 : i * 100 + 100]
        assert set(rows[:, 5].tolist()) == free
        same = rows.clone()
        same[:, 5] = data.test_x[i * 100, 5]
        assert torch.equal(same, data.test_x[i * 100].expand(99, 56))
    assert data.y.tolist() == [1, 0, 0, 0, 0] * 4 and data.test_y.tolist() == ([1] + [0] * 99) * 3
    # Users up to 3, two genders, three ages, occupations and zips, movies up to 11 in movies.dat; 0 besides.
    assert data.codes == (4, 3, 4, 4, 4, 12, *[12] * 50) and data.kind == "clicks" and data.classes == 2
    assert data.x.dtype == torch.int16 and data.shape == (56,)


def slow(ratings, users):
    """The pipeline with lists: {user: (training rows, test row)} of codes without negatives."""
    people = {int(line.split("::")[0]): line.split("::")[1:] for line in users}
    rows = [[int(v) for v in line.split("::")] for line in ratings]
    merged = [(u, *people[u], m, t) for u in people for uu, m, _, t in rows if uu == u]
    maps = [list(dict.fromkeys(row[i] for row in merged)) for i in range(6)]
    coded = [(row[0], *(maps[i].index(row[i]) + 1 for i in range(1, 6)), row[6]) for row in merged]
    found = {}
    for u in people:
        own = sorted((row for row in coded if row[0] == u), key=lambda row: row[6])
        made = [[*row[:6], *([0] * 50 + [r[5] for r in own[:j]])[-50:]] for j, row in enumerate(own)]
        if made:
            found[u] = (made[:-1], made[-1], {row[5] for row in own})
    return found


def random_set(seed=0, users=25, movies=90):
    """Users in an order of their own, times with ties, histories longer than 50, one user without ratings."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(users) + 1
    people = [f"{u}::{'MF'[rng.integers(2)]}::{rng.integers(4)}::{rng.integers(9)}::{rng.integers(99):05}" for u in ids]
    ratings = [
        f"{u}::{m + 1}::{rng.integers(1, 6)}::{rng.integers(20)}"
        for u in rng.permutation(users - 1) + 1
        for m in rng.permutation(movies)[: rng.integers(1, 80)]
    ]
    return ratings, people, [f"{m}::Name::Genre" for m in range(1, movies + 1)]


@pytest.mark.parametrize("seed", range(3))
def test_the_pipeline_against_lists(tmp_path, seed):
    ratings, people, movies = random_set(seed)
    data = loaded("movielens1m", written(tmp_path, ratings, people, movies))
    user, expected = data.columns["user"], slow(ratings, people)
    assert user.names == tuple(str(u) for u in sorted(expected))
    many = int(data.x[:, 5].max())
    for i, name in enumerate(user.names):
        train, test, rated = expected[int(name)]
        own = data.x[user.train == i]
        assert own[::5].tolist() == train and data.test_x[100 * i].tolist() == test
        negatives = torch.cat(
            [own[:, 5].reshape(-1, 5)[:, 1:].reshape(-1), data.test_x[100 * i + 1 : 100 * i + 100, 5]]
        )
        assert not rated & set(negatives.tolist()) and int(negatives.min()) >= 1 and int(negatives.max()) <= many
    assert len(data.x) == 5 * (len(ratings) - len(expected)) and len(data.test_x) == 100 * len(expected)
    assert any(len(train) > 50 for train, _, _ in expected.values())


def test_negatives_are_uniform_with_replacement_and_drawn_once(tmp_path):
    # 40 users rated 20 of the same 60 movies, which 30 more users make known; so 40 negatives free for each.
    ratings = [f"{u}::{m}::3::{m}" for u in range(1, 41) for m in range(1, 21)]
    ratings += [f"{u}::{u - 20}::3::1" for u in range(41, 81)]
    people = [f"{u}::M::1::1::1" for u in range(1, 81)]
    path = written(tmp_path, ratings, people, [f"{m}::N::G" for m in range(1, 61)])
    data = loaded("movielens1m", path)
    drawn = data.test_x[:4000].reshape(40, 100, 56)[:, 1:, 5]
    counts = Counter(drawn.reshape(-1).tolist())
    assert set(counts) == set(range(21, 61))
    # 3,960 draws over 40 movies: 99 each, deviation sqrt(99 * 39 / 40) = 9.8.
    assert max(abs(n - 99) for n in counts.values()) < 4.5 * 9.8
    assert all(len(set(row.tolist())) < 99 for row in drawn)  # 99 of 40 movies: with replacement
    assert digest(loaded("movielens1m", path).x) == digest(data.x) != digest(loaded("movielens1m", path, seed=1).x)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ratings": [*RATINGS[:-1], "3::5::2"]}, "ratings.dat: line 7 ('3::5::2') has 3 fields, expected were 4"),
        ({"ratings": [*RATINGS, "3::5::x::2"]}, "ratings.dat: holds a field that is no whole number"),
        ({"ratings": [*RATINGS, "3::1::6::2"]}, "ratings.dat: rating 6 of user 3 is none of 1 to 5 (1 such)"),
        ({"ratings": [*RATINGS, "4::1::5::2"]}, "ratings.dat: user 4 is in no other file (1 such)"),
        ({"ratings": [*RATINGS, "3::99::5::2"]}, "ratings.dat: movie 99 is in no other file (1 such)"),
        ({"ratings": []}, "ratings.dat: is empty"),
        ({"users": USERS[:2]}, "user 3 is in no other file"),
        ({"users": ["a::F::1::10::48067", *USERS[1:]]}, "users.dat: 'a' is no number of a line"),
        ({"users": ["1,F,1,10,48067", *USERS[1:]]}, "users.dat: line 1 ('1,F,1,10,48067') has 1 fields"),
        ({"ratings": [f"1::{m}::3::1" for m in (1, 2)]}, "user 1 rated all 2 movies: no negatives can be drawn"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, change, said):
    assert said in refused("movielens1m", written(tmp_path, **change))


def test_a_wrong_seed_is_told(tmp_path):
    assert "seed=-1 is no whole number" in refused("movielens1m", written(tmp_path), seed=-1)
