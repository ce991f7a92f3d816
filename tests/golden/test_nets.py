"""Methods that need a network, against plain PyTorch: ordinary modules, state dicts, a loop. MS 1, 10.2, 11.2, 13."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
from rig import BEGIN, CENTRES, CURVES, F64, Federation, Simple, close, quadratics, sum_of, throwaway
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from holdfast.method import Method, Part
from holdfast.slots import Correct, Perturb
from holdfast.task import Batch, Task
from holdfast.testing import quadratic
from holdfast.vector import Layout

CLIENTS, CLASSES, WIDE, RATE = 3, 3, 4, 0.2
OWN = [list(range(0, 8)), list(range(8, 13)), list(range(13, 25))]  # 8, 5 and 12 samples
SIZES = [float(len(own)) for own in OWN]
COMPANY = [[0, 1], [1, 2], [0, 1, 2], [0, 2]]  # client 2 is new in round 2; all come back
DRAW = torch.Generator().manual_seed(21)
X = torch.randn(25, WIDE, generator=DRAW, dtype=F64)
Y = torch.randint(CLASSES, (25,), generator=DRAW)
X = X + Y[:, None] - 1


class Net(nn.Module):
    """A tanh body, perhaps batch normalisation or dropout, and a linear head."""

    def __init__(self, middle: str = ""):
        super().__init__()
        kinds: dict[str, Callable[[], nn.Module]] = {
            "": nn.Identity, "norm": lambda: nn.BatchNorm1d(6), "drop": lambda: nn.Dropout(0.4)
        }  # fmt: skip
        self.body = nn.Sequential(nn.Linear(WIDE, 6), kinds[middle](), nn.Tanh())
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def made(middle: str = "") -> Net:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return Net(middle).double()


def feed(index: Tensor, live: Tensor, *_: object) -> Batch:
    return Batch(X[index], Y[index], live)


def batches(i: int, t: int) -> list[list[int]]:
    """Of three, the last one smaller, turned a little every round."""
    turned = OWN[i][t:] + OWN[i][:t]
    return [turned[s : s + 3] for s in range(0, len(turned), 3)]


def federation(method: str | Method, middle: str = "", engine: str = "loop") -> Federation:
    return Federation(method, Task.of(made(middle), dtype=F64), feed, SIZES, engine)


def train(method: str | Method, middle: str = "", engine: str = "loop", rounds: int = 4) -> Federation:
    fed = federation(method, middle, engine)
    for t in range(rounds):
        fed.round({i: batches(i, t) for i in COMPANY[t % len(COMPANY)]}, RATE)
    return fed


def agree(fed: Federation, net: nn.Module, skip: str = "-") -> None:
    """Equal weights to 1e-10, tensor by tensor."""
    got = fed.task.layout.split(fed.server.w)
    for name, p in net.named_parameters():
        if not name.startswith(skip):
            close(got[name], p.detach(), 1e-10, 1e-10)


# --- the reference


def averaged(net: nn.Module, locals_: list[nn.Module], ids: list[int], leave: str = "-") -> None:
    """Into `net`: floats by n_k, counters by their maximum; names that begin with `leave` stay."""
    total, new = sum(SIZES[i] for i in ids), net.state_dict()
    for name, old in new.items():
        stack = torch.stack([local.state_dict()[name] for local in locals_])
        if not name.startswith(leave):
            weights = torch.tensor([SIZES[i] / total for i in ids], dtype=F64)
            new[name] = torch.tensordot(weights, stack, 1) if old.is_floating_point() else stack.amax(0)
    net.load_state_dict(new)


def descend(net: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], steps: list[list[int]]) -> None:
    net.train()
    optimiser = torch.optim.SGD(net.parameters(), lr=RATE)
    for rows in steps:
        optimiser.zero_grad()
        loss(X[rows], Y[rows]).backward()
        optimiser.step()


def reference_moon(mu: float, tau: float, rounds: int = 4, middle: str = "") -> Net:
    """MS 10.2: CE + mu L_con, mean over the batch; non-participants keep their last local model."""
    net, last = made(middle), dict[int, Net]()
    for t in range(rounds):
        ends: list[nn.Module] = []
        for i in COMPANY[t % len(COMPANY)]:
            local = copy.deepcopy(net)

            def loss(x: Tensor, y: Tensor, local: Net = local, i: int = i) -> Tensor:
                z = local.body(x)
                value = cross_entropy(local.head(z), y)
                if i in last:
                    with torch.no_grad():
                        teachers = net.body(x), last[i].body(x)
                    near, far = (torch.cosine_similarity(z, other) / tau for other in teachers)
                    value = value - mu * (near.exp() / (near.exp() + far.exp())).log().mean()
                return value

            descend(local, loss, batches(i, t))
            last[i] = copy.deepcopy(local).eval()
            ends.append(local)
        averaged(net, ends, COMPANY[t % len(COMPANY)])
        net.eval()
    return net


def reference_per(rounds: int = 4, middle: str = "") -> tuple[Net, list[Net]]:
    """MS 11.2: the base averaged by n_k; heads stay, and new clients start from the common one."""
    net, heads = made(middle), [made(middle) for _ in OWN]
    for t in range(rounds):
        ends: list[nn.Module] = []
        for i in COMPANY[t % len(COMPANY)]:
            local = copy.deepcopy(net)
            local.head.load_state_dict(heads[i].head.state_dict())
            descend(local, lambda x, y, local=local: cross_entropy(local(x), y), batches(i, t))
            heads[i].head.load_state_dict(local.head.state_dict())
            ends.append(local)
        averaged(net, ends, COMPANY[t % len(COMPANY)], leave="head")
    return net, heads


def own_head(net: Net) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in net.head.parameters()])


# --- moon


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("mu, tau", [(1.0, 0.5), (5.0, 1.0)])
def test_moon_is_its_reference(mu, tau, engine):
    """MS 10.2, weights n_k, partial participation."""
    fed = train(f"moon(mu={mu}, tau={tau})", engine=engine)
    agree(fed, reference_moon(mu, tau))
    assert (fed.server.w - train("fedavg").server.w).abs().max() > 1e-3


def test_moon_without_its_loss_is_fedavg():
    """MS 10.2, 14: mu = 0 -> FedAvg."""
    assert torch.equal(train("moon(mu=0)").server.w, train("fedavg").server.w)


def test_moon_begins_as_fedavg():
    """MS 10.2: the pool of previous models is empty at a client's first participation, then L_con = 0."""
    moon, plain = train("moon", rounds=1), train("fedavg", rounds=1)
    assert torch.equal(moon.server.w, plain.server.w)
    moon, plain = federation("moon"), federation("fedavg")
    for fed in (moon, plain):
        fed.round({0: batches(0, 0)}, RATE)
        fed.round({1: batches(1, 0), 2: batches(2, 0)}, RATE)
    assert torch.equal(moon.server.w, plain.server.w)


def test_moon_of_three_equal_models():
    """MS 10.2: z = z_glob = z_prev gives log 2, whatever tau; weight mu, and it counts in the loss reported."""
    fed, plain = federation("moon(mu=3.0, tau=0.2)"), federation("fedavg")
    for f in (fed, plain):
        f.round({0: batches(0, 0)}, 0.0)  # with no rate the last local model is the global one
    ups, base = fed.round({0: batches(0, 0)[:1]}, 0.0), plain.round({0: batches(0, 0)[:1]}, 0.0)
    close(ups.card["loss"] - base.card["loss"], [3 * math.log(2)])


def test_teachers_of_moon_are_frozen():
    """MS 10.2: global and previous model are 'eval mode, frozen': BatchNorm with their own running statistics."""
    agree(train("moon", "norm", rounds=3), reference_moon(1.0, 0.5, 3, "norm"))


def test_moon_of_one_sample():
    """MS 10.2: squeeze() breaks for batch size 1, flatten(1) does not."""
    fed = federation("moon")
    for _ in range(2):
        fed.round({0: [[0]], 1: [[8]]}, RATE)
    assert fed.server.w.isfinite().all() and fed.ups.delta.any(1).all()


# --- sam beside batch normalisation


def reference_sam(rho: float, rounds: int = 4) -> Net:
    """ML 3 (FedSAM) by hand: ascend, step from w with the gradient there; ML 4.3: running statistics only of pass 1."""
    net = made("norm")
    for t in range(rounds):
        ends: list[nn.Module] = []
        for i in COMPANY[t % len(COMPANY)]:
            local = copy.deepcopy(net).train()
            weights = list(local.parameters())
            for rows in batches(i, t):
                g = torch.autograd.grad(cross_entropy(local(X[rows]), Y[rows]), weights)
                norm = math.sqrt(sum(float(x.square().sum()) for x in g)) + 1e-7
                aside = copy.deepcopy(local)  # its statistics are thrown away with it
                with torch.no_grad():
                    for p, x in zip(aside.parameters(), g, strict=True):
                        p += rho * x / norm
                g = torch.autograd.grad(cross_entropy(aside(X[rows]), Y[rows]), list(aside.parameters()))
                with torch.no_grad():
                    for p, x in zip(weights, g, strict=True):
                        p -= RATE * x
            ends.append(local)
        averaged(net, ends, COMPANY[t % len(COMPANY)])
    return net


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_sam_keeps_the_statistics_of_its_first_pass(engine):
    fed, net = train("sam(rho=0.5)", "norm", engine), reference_sam(0.5)
    agree(fed, net)
    for name, b in net.named_buffers():
        close(fed.server.buffers[name], b, 1e-10, 1e-10)


def test_lesam_keeps_the_statistics_of_its_only_pass():
    """It perturbs without a pass of its own: round 1, where e = 0, has FedAvg's statistics, and later rounds others."""
    fed, plain = federation("lesam(rho=0.5)", "norm"), federation("fedavg", "norm")
    names = [name for name, b in fed.task.buffers.items() if b.is_floating_point()]
    for t in range(2):
        for f in (fed, plain):
            f.round({i: batches(i, t) for i in (0, 1)}, RATE)
        same = all(torch.equal(fed.server.buffers[name], plain.server.buffers[name]) for name in names)
        assert same == (t == 0)


# --- per


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_per_is_its_reference(engine):
    """MS 11.2, weights n_k, partial participation."""
    fed, (net, heads) = train("per", engine=engine), reference_per()
    agree(fed, net, skip="head")
    for i, local in enumerate(heads):
        close(fed.memory["private"]["w"][i], own_head(local), 1e-10, 1e-10)


@pytest.mark.parametrize(
    "text", ["per", "per + avgm", "per + gh", "per + nova", "dyn + per", "scaffold + per", "eve + per"]
)
def test_no_head_on_the_wire(text):
    """MS 11.2: the server never holds a head: none in what it sends or gets, its own stays the initial one."""
    fed = federation(text)
    start = fed.task.layout.own(fed.task.start)
    for t in range(3):
        fed.round({i: batches(i, t) for i in COMPANY[t]}, RATE)
        head = fed.task.layout.own
        assert torch.equal(head(fed.down.w), start) and torch.equal(head(fed.server.w), start)
        for stack in (fed.ups.delta, *(v for r in fed.ups.parts.values() for v in r.values() if v.dim() == 2)):
            assert not any(head(row).any() for row in stack)
        vectors = [v for r in (*fed.down.parts.values(), *fed.server.parts.values()) for v in r.values() if v.dim()]
        assert not any(head(v).any() for v in vectors)
    assert (fed.memory["private"]["w"] - start).abs().max() > 1e-3


def test_per_of_one_client_is_local_training():
    """MS 11.2: one client == local training."""
    fed, net = Federation("per", Task.of(made(), dtype=F64), feed, SIZES[:1]), made()
    for t in range(3):
        fed.round({0: batches(0, t)}, RATE)
        descend(net, lambda x, y: cross_entropy(net(x), y), batches(0, t))
    agree(fed, net, skip="head")
    close(fed.memory["private"]["w"][0], own_head(net), 1e-10, 1e-10)


def test_equal_clients_have_equal_heads():
    """MS 11.2: with identical client data and equal heads all heads stay equal, and the model is FedAvg's."""
    fed, plain = federation("per"), federation("fedavg")
    for t in range(3):
        for f in (fed, plain):
            f.round({i: batches(0, t) for i in range(CLIENTS)}, RATE)
    heads = fed.memory["private"]["w"]
    assert torch.equal(heads[0], heads[1]) and torch.equal(heads[0], heads[2])
    close(fed.task.layout.place(fed.server.w, heads[0]), plain.server.w)


def split(method: str, engine: str = "loop") -> Simple:
    """Quadratics whose first five weights are a body and whose last three a head: the two do not touch."""
    layout = Layout(("body", "head"), ((5,), (3,)), 8, head=("head",))
    fed = quadratics(method, CURVES, CENTRES, BEGIN, [3.0, 1.0, 5.0, 2.0], layout, engine=engine)
    for cohort in ({0: 3, 1: 5, 2: 1}, {1: 5, 3: 4}, {0: 3, 2: 4}, {0: 2, 1: 2}):
        fed.go(cohort)
    return fed


@pytest.mark.parametrize("engine", ["loop", "batched"])
@pytest.mark.parametrize("text", ["scaffold", "dyn", "feddc", "prox", "cm(alpha=1) + scaffold"])
def test_corrections_leave_the_head_alone(text, engine):
    """MS 1.3, 11.2: the private head is trained by its data alone; the body is what it is without the head."""
    fed, per, whole = split(f"{text} + per", engine), split("per", engine), split(text, engine)
    assert torch.equal(fed.memory["private"]["w"], per.memory["private"]["w"])
    close(fed.server.w[:5], whole.server.w[:5])
    assert (whole.server.w[5:] - fed.server.w[5:]).abs().max() > 1e-3


def test_norms_and_counts_see_the_shared_part():
    """MS 1.3: 'slots 7-10 and all norms/counts d must be restricted to it': eve's d is 5, and gh sees the bodies."""
    bodies = Task.of(quadratic, layout=Layout(("body",), ((5,),), 5), dtype=F64).having(start=BEGIN[:5].clone())
    for text in ("eve", "gh", "avgm", "adam", "nova", "eve + gh"):
        layout = Layout(("body", "head"), ((5,), (3,)), 8, head=("head",))
        fed = quadratics(f"{text} + per", CURVES, CENTRES, BEGIN, layout=layout)
        alone = Simple(text, bodies, torch.stack((CURVES, CENTRES), 1)[..., :5], None)
        for f in (fed, alone):
            for _ in range(3):
                f.go({0: 2, 1: 3, 2: 1, 3: 3})
        close(fed.server.w[:5], alone.server.w)
        if "eve" in text:
            close(fed.state("eve", "v"), alone.state("eve", "v"))  # Q and R are per weight, so d shows in it


# --- buffers


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_a_batch_of_one_row_before_batch_normalisation(engine):
    """MS 13 skips such a batch; here it is a step (docs/forms.md): one row's deviations are 0, so only its bias passes.

    What lies before the normalisation and its weight stand still, and so does the head's weight, for that bias begins
    at 0; the two biases move, the running statistics stay, and nothing is NaN.
    """
    fed = federation("fedavg", "norm", engine)
    before, buffers = fed.task.layout.split(fed.server.w), dict(fed.server.buffers)
    fed.round({0: [batches(0, 0)[0][:1]]}, RATE)
    after = fed.task.layout.split(fed.server.w)
    still = {name for name in before if torch.equal(before[name], after[name])}
    assert still == {"body.0.weight", "body.0.bias", "body.1.weight", "head.weight"} and fed.server.w.isfinite().all()
    for name in ("running_mean", "running_var"):
        close(fed.server.buffers[f"body.1.{name}"], buffers[f"body.1.{name}"])
    assert int(fed.server.buffers["body.1.num_batches_tracked"]) == 1


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_buffers_are_averaged_and_counters_maximised(engine):
    """MS 1, 13: floating buffers with the weights, integer counters their maximum; weights too are plain PyTorch's."""
    fed, net = federation("fedavg", "norm", engine), made("norm")
    for t, ids in enumerate(COMPANY):
        fed.round({i: batches(i, t) for i in ids}, RATE)
        ends: list[nn.Module] = []
        for i in ids:
            local = copy.deepcopy(net)
            descend(local, lambda x, y, local=local: cross_entropy(local(x), y), batches(i, t))
            ends.append(local)
        averaged(net, ends, ids)
    agree(fed, net)
    state = net.state_dict()
    assert set(fed.server.buffers) == {f"body.1.{n}" for n in ("running_mean", "running_var", "num_batches_tracked")}
    for name, value in fed.server.buffers.items():
        close(value, state[name], 1e-10, 1e-10)
    assert fed.server.buffers["body.1.num_batches_tracked"] == 3 + 4 + 4 + 4  # the longest client of each round


def test_buffers_of_an_empty_client_have_no_weight():
    """MS 13: weight 0; a round of nobody leaves the buffers as they were."""
    fed, without = federation("fedavg", "norm"), federation("fedavg", "norm")
    fed.round({0: batches(0, 0)[:2], 1: [], 2: batches(2, 0)}, RATE)
    without.round({0: batches(0, 0)[:2], 2: batches(2, 0)}, RATE)
    before = fed.server.buffers
    for name, value in before.items():
        close(value, without.server.buffers[name])
    fed.round({1: []}, RATE)
    assert all(torch.equal(fed.server.buffers[name], value) for name, value in before.items())


def test_server_optimisers_leave_buffers_alone():
    """MS 1, 12.5: only trainable parameters go through momentum, Adam, FedEve; buffers are averaged."""
    plain = train("fedavg", "norm", rounds=1)
    for text in ("avgm", "adam", "eve", "gh", "nova", "server(lr=0.1)"):
        fed = train(text, "norm", rounds=1)
        for name, value in fed.server.buffers.items():
            close(value, plain.server.buffers[name])


# --- dropout


@pytest.mark.parametrize("text", ["fedavg", "sam", "moon + scaffold", "per"])
def test_dropout_in_both_engines(text):
    """DE 7: the same masks in every executor."""
    loop, batched = train(text, "drop"), train(text, "drop", "batched")
    close(loop.server.w, batched.server.w)


def test_dropout_drops():
    """DE 7: masks differ from step to step, client to client and seed to seed, and are the same in a repetition."""
    with_it, without = train("fedavg", "drop"), train("fedavg")
    assert (with_it.server.w - without.server.w).abs().max() > 1e-3
    assert torch.equal(with_it.server.w, train("fedavg", "drop").server.w)
    fed = federation("fedavg", "drop")
    losses = fed.round({i: [[0, 1, 2]] for i in range(3)}, 0.0).card["loss"].tolist()
    fed = federation("fedavg", "drop")
    losses += fed.round({0: [[0, 1, 2]] * 2}, 0.0).card["loss"].tolist()
    fed = Federation("fedavg", Task.of(made("drop"), dtype=F64), feed, SIZES, seed=1)
    losses += fed.round({0: [[0, 1, 2]]}, 0.0).card["loss"].tolist()
    assert len({round(value, 9) for value in losses}) == 5


SEEN: dict[str, list[Tensor]] = {"e": [], "g": []}


@throwaway("passes")
class Passes(Part, Perturb, Correct):
    """Notes the perturbation of the first pass and the gradient of the second."""

    def perturb(self, e, s):
        SEEN["e"].append(e.clone())
        return e

    def correct(self, s):
        SEEN["g"].append(s.data.clone())
        return torch.zeros_like(s.data)


def test_both_passes_of_sam_drop_the_same():
    """DE 7, ML 4.3: both passes use the same key: at a tiny radius e points along the gradient of the second pass."""
    for record in SEEN.values():
        record.clear()
    train(sum_of("sam(rho=1e-9)", Passes()), "drop", rounds=2)
    assert len(SEEN["e"]) == len(SEEN["g"]) > 8
    for e, g in zip(SEEN["e"], SEEN["g"], strict=True):
        close(e / e.norm(), g / g.norm(), 1e-6)


def test_evaluation_has_no_dropout():
    """DE 7: evaluation has none, so MOON's teachers are whole."""
    task = Task.of(made("drop"), dtype=F64)
    rows = torch.arange(5)
    batch = feed(rows, torch.ones(5, dtype=torch.bool))
    net = made("drop").eval()
    close(task.forward(task.start, task.buffers, batch).logits, net(X[rows]).detach())
    close(task.forward(task.start, task.buffers, batch).hidden("moon"), net.body(X[rows]).detach())
