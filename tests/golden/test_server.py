"""The server's parts, fed by hand: MS 3 to 8, 13, 14."""

import pytest
import torch
from rig import BEGIN, CENTRES, CURVES, F64, Desk, close, linears, once, quadratics, sum_of, throwaway, vector

from holdfast.parts.eve import Eve
from holdfast.vector import mapped


def nova(*a: float) -> dict:
    return {"nova": {"a": vector(*a)}}


# --- weights


def test_weights_are_sizes():
    """MS 3, test (i): u = (2), (-1), n = (3, 1) -> 1.25; `uniform` gives .5."""
    assert once("fedavg", [[2.0], [-1.0]], n=[3, 1]) == 1.25
    assert once("sized", [[2.0], [-1.0]], n=[3, 1]) == 1.25
    assert once("uniform", [[2.0], [-1.0]], n=[3, 1]) == 0.5


@pytest.mark.parametrize("text", ["fedavg", "uniform", "gh"])
def test_identical_updates_are_kept(text):
    """MS 3, test (ii)."""
    close(once(text, [[2.0, -1.0]] * 3, n=[3, 1, 7]), [2.0, -1.0])


@pytest.mark.parametrize("text", ["fedavg", "uniform", "eve", "avgm", "adam", "nova"])
def test_clients_have_no_order(text):
    """MS 3, test (iii): permuting clients changes nothing."""
    u, n, a = (
        torch.randn(5, 3, generator=torch.Generator().manual_seed(3), dtype=F64),
        [3, 1, 7, 2, 2],
        [1.0, 2, 3, 4, 5],
    )
    there, back = [4, 2, 0, 1, 3], {"up": nova(*a)}
    moved = {"up": nova(*(a[i] for i in there))}
    close(once(text, u, n=n, **back), once(text, u[there], n=[n[i] for i in there], **moved))


@pytest.mark.parametrize("text", ["fedavg", "uniform", "gh", "nova", "eve", "server", "avgm(form='heavy')", "eve + gh"])
def test_one_participant_gives_its_own_model(text):
    """MS 3 edge case, MS 13 'one participant': w' = w_k in the first round."""
    close(once(text, [[3.0, -2.0]], n=[5], up=nova(1.0)), [3.0, -2.0])


# --- momentum and adam


@pytest.mark.parametrize("form, scale", [("dampened", 1.0), ("heavy", 5.0)])
def test_momentum_of_a_constant_update(form, scale):
    """MS 4: constant c for t rounds: dampened v = (1 - beta^t) c, heavy v = (1 - beta^t)/(1 - beta) c; w moves by v."""
    desk, c = Desk(f"avgm(beta=0.8, form='{form}')", vector(1.0, 1.0)), vector(2.0, -1.0)
    for t in range(1, 8):
        close(desk.take([[2.0, -1.0]]), scale * (1 - 0.8**t) * c)
        close(desk.state("avgm", "v"), scale * (1 - 0.8**t) * c)


ADAM = {  # MS 5, numeric tests: first step for Delta = (.5, -.01, 0), b = (.9, .99), tau = 1e-3, eta = .1
    "adam(v0='zero')": (0.098039, -0.050000, 0),
    "adam": (0.098020, -0.041482, 0),
    "adam(v0='zero', bias_correction=True)": (0.099800, -0.090909, 0),
    "adam(rule='yogi', v0='zero')": (0.098039, -0.050000, 0),
    "adam(rule='adagrad', beta1=0.0, v0='zero')": (0.099800, -0.090909, 0),
    "adam(rule='adagrad', beta1=0.9, v0='zero')": (0.0099800, -0.0090909, 0),
}


@pytest.mark.parametrize("text", ADAM)
def test_first_step_of_adam(text):
    close(once(text, [[0.5, -0.01, 0.0]]), ADAM[text], atol=0.51e-6, rtol=0)


def test_adam_keeps_moving_without_updates():
    """MS 5, edge: Delta = 0 everywhere -> m decays, the step is m/(sqrt v + tau), not zero."""
    desk = Desk("adam", vector(0.0))
    desk.take([[0.5]])
    m, v = desk.state("adam", "m"), desk.state("adam", "v")
    moved = desk.take([[0.0], [0.0]])
    close(moved, 0.1 * 0.9 * m / ((0.99 * v).sqrt() + 1e-3))
    assert moved > 0.05


def test_one_participant_keeps_the_memory_of_the_optimiser():
    """MS 13 'one participant': FedOpt and FedAvgM keep their memory."""
    desk = Desk("avgm(beta=0.5)", vector(0.0))
    desk.take([[4.0], [0.0]])
    close(desk.take([[2.0]]), [1.5])  # .5 * 1 + .5 * 2


# --- nova


@pytest.mark.parametrize("tau, a", [(1, 1), (2, 2.9), (5, 13.1441), (10, 41.381060)])
def test_normaliser_with_momentum(tau, a):
    """MS 6, tests: rho = .9: a(1) = 1, a(2) = 2.9, a(5) = 13.1441, a(10) = 41.381060 = sum (1 - b^s)/(1 - b)."""
    fed = linears("nova + momentum(beta=0.9)", torch.ones(1, 2, dtype=F64))
    ups = fed.go(tau)
    close(ups.parts["nova"]["a"], [a], atol=0.5e-6)
    close(ups.parts["nova"]["a"], [sum((1 - 0.9**s) / 0.1 for s in range(1, tau + 1))])
    close(ups.delta, [[-0.1, -0.1]])  # under a constant gradient every client's normalised update is -lr g


@pytest.mark.parametrize("tau", [1, 2, 7])
@pytest.mark.parametrize("mu", [0.0, 0.5, 10.0])
def test_normaliser_with_a_pull(tau, mu):
    """MS 6, table, row proximal: A <- (1 - eta mu) A + 1; also at eta mu = 1 and at mu = 0."""
    fed, a = linears(f"nova + prox(mu={mu})", torch.ones(1, 2, dtype=F64)), 0.0
    ups = fed.go(tau)
    for _ in range(tau):
        a = (1 - 0.1 * mu) * a + 1
    close(ups.parts["nova"]["a"], [a])
    close(ups.delta, [[-0.1, -0.1]])


@pytest.mark.parametrize("text, moved", [("fedavg", -1.0), ("nova", 0.0)])
def test_unequal_steps(text, moved):
    """MS 6: tau = (1, 3), p = (1/2, 1/2), u = (1, -3): FedAvg -1, FedNova 0."""
    fed = linears(text, vector(-1.0, 1.0)[:, None])
    fed.go({0: 1, 1: 3}, lr=1.0)
    close(fed.server.w, [moved])


def test_effective_steps_are_weighted():
    """MS 6: tau_eff = sum p_k a_k, w' = w + tau_eff sum p_k d_k."""
    close(once("nova", [[1.0], [-2.0]], n=[3, 1], up=nova(2.0, 6.0)), [3.0 * 0.25])


# --- gh


def projected(u: list[list[float]], k: int, seed: int = 0, **more) -> torch.Tensor:
    """What becomes of client k's update: all the weight is put on it, which MS 7 lets in only after projection."""
    return Desk("gh", torch.zeros(len(u[0]), dtype=F64), seed=seed).take(
        u, n=[float(i == k) for i in range(len(u))], **more
    )


def test_two_conflicting_updates():
    """MS 7, test 2; 5: after one projection <g_k', g_j> = 0."""
    u = [[1.0, 0.0], [-1.0, 1.0]]
    close(projected(u, 0), [0.5, 0.5])
    close(projected(u, 1), [0.0, 1.0])
    close(once("gh", u), [0.25, 0.75])
    close(once("fedavg", u), [0.0, 0.5])
    close(projected(u, 0) @ vector(*u[1]), 0.0)
    close(projected(u, 1) @ vector(*u[0]), 0.0)


def test_order_of_visits():
    """MS 7, test 3: order (2, 3) gives (.25, .5, .25), (3, 2) gives (.25, .25, .5). Both are drawn."""
    u = [[1.0, 0, 0], [-1.0, 1, 0], [-1.0, 0, 1]]
    found = {tuple(round(x, 9) for x in projected(u, 0, seed).tolist()) for seed in range(12)}
    assert found == {(0.25, 0.5, 0.25), (0.25, 0.25, 0.5)}
    desk = Desk("gh", torch.zeros(3, dtype=F64))
    assert len({tuple(round(x, 9) for x in desk.take(u, n=[1, 0, 0]).tolist()) for _ in range(12)}) == 2
    close(projected(u, 0, 5), projected(u, 0, 5), 0, 0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rescaling(seed):
    """MS 7, test 4: rescaling g_j leaves g_k' unchanged (k != j); rescaling g_k scales g_k' by the same factor."""
    u = torch.randn(4, 6, generator=torch.Generator().manual_seed(seed), dtype=F64)
    longer = u.clone()
    longer[2] *= 7
    for k in range(4):
        close(projected(longer.tolist(), k, seed), (7 if k == 2 else 1) * projected(u.tolist(), k, seed))


def test_harmonise_and_normalise_commute():
    """MS 1.3: FedGH x FedNova: harmonise-then-normalise equals normalise-then-harmonise, for the same order."""
    u, a = torch.randn(4, 6, generator=torch.Generator().manual_seed(5), dtype=F64), vector(1, 5, 2, 3)
    harmonised = torch.stack([projected(u.tolist(), k) for k in range(4)])
    after = a.mean() * (harmonised / a[:, None]).mean(0)
    close(once("nova + gh", u / a[:, None], up={"nova": {"a": a}}), after)


def test_projections_never_lengthen():
    """MS 7: norms never increase per projection."""
    draw = torch.Generator().manual_seed(8)
    for _ in range(10):
        u = torch.randn(5, 8, generator=draw, dtype=F64)
        assert all(projected(u.tolist(), k).norm() <= u[k].norm() + 1e-12 for k in range(5))


@pytest.mark.parametrize("u", [[[1.0, 2.0]], [[1.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_gh_with_nobody_to_conflict_with(u):
    """MS 7, test 6: m = 1 and a zero vector in the set do not raise; zero updates stay in the mean (13)."""
    assert torch.equal(once("gh", u), once("fedavg", u))


@pytest.mark.parametrize("n", [[1, 1], [9, 1]])
def test_opposite_updates_vanish(n):
    """MS 7, MS 15.4: u = (1, 0), (-2, 0) -> 0 whatever lengths and weights; FedAvg (-.5, 0)."""
    u = [[1.0, 0.0], [-2.0, 0.0]]
    close(once("gh", u, n=n), [0.0, 0.0])
    close(once("fedavg", u), [-0.5, 0.0])


def test_weights_enter_after_the_projection():
    """MS 7: w' = w + sum p_k g_k'."""
    u = [[1.0, 0.0], [-1.0, 1.0]]
    close(once("gh", u, n=[3, 1]), 0.75 * vector(0.5, 0.5) + 0.25 * vector(0.0, 1.0))


# --- eve (the spec's M and Delta point down: m = -M, u = -Delta)


def gains(desk: Desk, u: list[list[float]], noise: float, rounds: int) -> list[float]:
    """G of each round: s = shat R/(shat + R) = G R."""
    found = []
    for _ in range(rounds):
        desk.take(u)
        found.append(float(desk.state("eve", "v")) / noise)
        assert found[-1] <= 1  # MS 8: s <= R always
    return found


@pytest.mark.parametrize("mode", ["innovation", "energy"])
def test_eve_with_identical_updates(mode):
    """MS 8, test (a), and R = 0 -> G = 1: M = Dbar, s = 0."""
    desk = Desk(f"eve(q_mode='{mode}')", vector(1.0, 1.0))
    for u in ([3.0, -1.0], [0.5, 2.0]):
        close(desk.take([u, u, u], n=[1, 2, 3]), u)
        close(desk.state("eve", "m"), u)
        close(desk.state("eve", "v"), 0.0)


def test_eve_with_a_huge_spread():
    """MS 8, test (b): d=1, m=2, M=1, s=0, Delta = (1e6+.5, -1e6+.5): Q=.125, R=5e11, G=2.5e-13, M kept to 12 digits."""
    desk = Desk("eve", vector(0.0))
    desk.server = desk.server._replace(parts={"eve": {**desk.server.parts["eve"], "m": vector(-1.0)}})
    desk.take([[-1e6 - 0.5], [1e6 - 0.5]])
    close(desk.state("eve", "m"), [-1.0], 1e-12, 0)
    close(desk.state("eve", "v"), 0.125 * (1 - 2.5e-13), 1e-15, 0)
    assert desk.state("eve", "m") != -1.0  # G is small, not zero: a spread lost in float32 would make it 1


@pytest.mark.parametrize("mode", ["innovation", "energy"])
def test_eve_shrinks_its_first_step(mode):
    """MS 8, test (c): round 1 has G = ||Dbar||^2 / mean ||Delta_k||^2."""
    u = torch.randn(4, 6, generator=torch.Generator().manual_seed(9), dtype=F64)
    gain = u.mean(0).square().sum() / u.square().sum(1).mean()
    close(once(f"eve(q_mode='{mode}')", u), gain * u.mean(0))


@pytest.mark.parametrize("ratio, gain", [(1.0, 0.618034), (0.1, 0.270156)])
def test_eve_with_a_constant_ratio(ratio, gain):
    """MS 8, test (d) and closed forms: Q = R -> .618034, Q/R = .1 -> .270156. u = c +- e: Q/R = |c|^2/|e|^2."""
    c = ratio**0.5
    found = gains(Desk("eve(q_mode='energy')", vector(0.0, 0.0)), [[c, 1.0], [c, -1.0]], 1 / 4, 60)
    close(found[-1], gain, 0.5e-6, 0)


def test_eve_is_momentum_with_its_own_beta():
    """MS 8: FedEve equals dampened FedAvgM with beta_t = 1 - G_t, plus the look-ahead broadcast."""
    u, desk, v = [[0.7, 1.0], [0.7, -1.0]], Desk("eve(q_mode='energy')", vector(0.0, 0.0)), torch.zeros(2, dtype=F64)
    for _ in range(5):
        moved = desk.take(u)
        gain = desk.state("eve", "v") / 0.25
        v = (1 - gain) * v + gain * vector(0.7, 0.0)
        close(moved, v)


@pytest.mark.parametrize(
    "mode, gain, s, w", [("innovation", 0.428571, 0.053571, 0.392857), ("energy", 0.6, 0.075, 0.35)]
)
def test_golden_values_of_eve(mode, gain, s, w):
    """MS 8, golden values; test (e): sent b = w - M, the new w is built from w; (g): the modes part in round 2."""
    desk = Desk(f"eve(q_mode='{mode}')", vector(1.0, 1.0))
    desk.take([[-1.0, 0.0], [0.0, -1.0]])
    close(desk.server.w, [0.75, 0.75])
    close(-desk.state("eve", "m"), [0.25, 0.25])
    close(desk.state("eve", "v"), 0.0625)
    desk.take([[-1.0, -1.0], [0.0, 0.0]])
    close(desk.state("eve", "v"), s, 0.51e-6, 0)
    close(desk.state("eve", "v") / 0.125, gain, 0.5e-5, 0)  # s = G R, and R = .125
    close(-desk.state("eve", "m"), [0.75 - w] * 2, 0.51e-6, 0)
    close(desk.server.w, [w, w], 0.51e-6, 0)


def test_eve_sends_a_look_ahead():
    """MS 8, test (e): the broadcast point is w - M, deltas are measured from it, the step is taken from w."""
    fed = quadratics("eve")
    for _ in range(3):
        w, m = fed.server.w, fed.state("eve", "m")
        fed.go(5)
        close(fed.down.w, w + m)
        close(fed.server.w, w + fed.state("eve", "m"))


@throwaway("eve_at_home")
class EveAtHome(Eve):
    """FedEve that sends w itself."""

    def cast(self, w, st):
        return w, {}


def test_eve_without_look_ahead_or_noise_is_fedavg():
    """MS 8, test (f): G = 1 (identical clients), M = 0 at the start, no look-ahead -> FedAvg; with it, another path."""
    a, b = torch.full((3, 2), 1.5, dtype=F64), torch.full((3, 2), 2.0, dtype=F64)
    runs = [quadratics(text, a, b, vector(0.0, 1.0)) for text in (sum_of(EveAtHome()), "fedavg", "eve")]
    for fed in runs:
        for _ in range(4):
            fed.go(5)
    close(runs[0].server.w, runs[1].server.w)
    assert (runs[2].server.w - runs[1].server.w).abs().max() > 1e-6


@pytest.mark.parametrize("mode", ["innovation", "energy"])
def test_eve_at_rest(mode):
    """MS 8, edge: M = 0 and all Delta = 0 is 0/0: G = 1, nothing moves and nothing is NaN."""
    desk = Desk(f"eve(q_mode='{mode}')", vector(1.0, 2.0))
    for _ in range(2):
        close(desk.take([[0.0, 0.0]] * 3), [0.0, 0.0], 0, 0)
        close(desk.state("eve", "v"), 0.0, 0, 0)


def test_eve_drops_its_momentum_when_nobody_moves():
    """MS 8, edge: Delta_k = 0 with M != 0: G = 1, M = 0, w stays. One participant: M = Dbar, s = 0."""
    desk = Desk("eve", vector(1.0, 2.0))
    close(desk.take([[1.0, 0.0]]), [1.0, 0.0])
    close(desk.state("eve", "v"), 0.0)
    close(desk.take([[0.0, 0.0]] * 3), [0.0, 0.0])
    close(desk.state("eve", "m"), [0.0, 0.0])


def test_eve_beside_gh():
    """MS 1.3: observe the harmonised mean, (.25, .75): Q = .15625; estimate R from the raw updates: .3125; G = 1/3."""
    close(once("eve + gh", [[1.0, 0.0], [-1.0, 1.0]]), [0.25 / 3, 0.75 / 3])


# --- empty clients


SERVERS = [
    "fedavg", "uniform", "gh", "nova", "nova + momentum", "nova + gh", "eve", "eve(r_mean='uniform')",
    "eve(q_mode='energy')", "eve + gh", "avgm", "adam", "server(lr=0.5)", "cm", "scaffold", "feddyn", "feddc",
    "fedsmoo", "lesam", "lesam(mode='last_update')", "init",
]  # fmt: skip


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", SERVERS)
def test_an_empty_client_does_not_count(text, engine):
    """MS 3 edge case, MS 13: n = 0 -> 0 steps, weight 0, excluded from m in every 1/m formula; it keeps its memory.

    A client that has samples but takes no step (drop_last) is left out in the same way (MS 6, edge: tau = 0).
    """
    for size in (0.0, 4.0):
        with_it, without = (
            quadratics(text, CURVES, CENTRES, BEGIN, sizes=[3.0, 1.0, 2.0, size], engine=engine) for _ in range(2)
        )
        for t in range(3):
            with_it.go({0: 3, 1: 1 + t, 3: 0})
            without.go({0: 3, 1: 1 + t})
        close(with_it.server.w, without.server.w)
        for name, record in without.server.parts.items():
            for key, value in record.items():
                close(with_it.state(name, key), value)
        for name, record in without.memory.items():
            for key, value in record.items():
                close(with_it.memory[name][key], value)


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", SERVERS)
def test_a_round_of_empty_clients_changes_nothing(text, engine):
    """MS 3 edge case: all empty -> skip the round."""
    fed = quadratics(text, CURVES, CENTRES, BEGIN, sizes=[1.0, 1.0, 0.0, 0.0], engine=engine)
    fed.go({0: 3, 1: 2})
    before = (fed.server.w, fed.server.parts, mapped(torch.clone, fed.memory))
    fed.go({2: 0, 3: 0})
    assert torch.equal(fed.server.w, before[0])
    assert all(torch.equal(fed.state(n, k), v) for n, r in before[1].items() for k, v in r.items())
    assert all(torch.equal(fed.memory[n][k], v) for n, r in before[2].items() for k, v in r.items())
    fed.go({0: 3, 1: 2})
    assert fed.server.w.isfinite().all()
