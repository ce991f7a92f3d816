"""What a method costs, read off its own functions: ML 2.3 and MS 2, as multiples of the model's bytes."""

from typing import ClassVar

import pytest
import torch
from rig import F64, quadratics, sum_of, throwaway

from holdfast.check import Sheet, sheet
from holdfast.errors import Refused
from holdfast.method import Method, Part
from holdfast.models.zoo import build
from holdfast.parts.scaffold import Scaffold
from holdfast.presets import PRESETS
from holdfast.slots import Close, zeros
from holdfast.task import Batch, Task
from holdfast.text import parse

SCALARS = 16  # bytes: a step count, a 'seen', a variance
NET = Task.of(build("mlp", {"hidden": 20, "layers": 1}, (1, 5, 5), 4, 0))
D, HEAD = NET.layout.size, 4 * 20 + 4
SAMPLE = Batch(torch.zeros(3, 1, 5, 5), torch.zeros(3, dtype=torch.int64), torch.ones(3, dtype=torch.bool))


def sheet_of(method: str | Method) -> Sheet:
    return sheet(parse(method) if isinstance(method, str) else method, NET, SAMPLE)


#          down, up, client state, server state, passes, extra forwards a step
COSTS = {
    # ML 2.3
    "fedavg": (1, 1, 0, 1, 1, 0), "fedprox": (1, 1, 0, 1, 1, 0), "fedsam": (1, 1, 0, 1, 2, 0),
    "fedprox_alias_bug": (1, 1, 0, 1, 1, 0),
    "fedasam": (1, 1, 0, 1, 2, 0), "fedfft": (1, 1, 0, 1, 2, 0), "specgradfilter": (1, 1, 0, 1, 1, 0),
    "scaffold": (2, 2, 1, 2, 1, 0), "fedfft_s": (2, 2, 1, 2, 2, 0), "scaffold + specgrad": (2, 2, 1, 2, 1, 0),
    "fedgamma": (2, 2, 1, 2, 2, 0), "feddyn": (1, 1, 1, 2, 1, 0), "fedspeed": (1, 1, 1, 2, 2, 0),
    "fedfft_d": (1, 1, 1, 2, 2, 0), "fedcm": (2, 1, 0, 2, 1, 0), "mofedsam": (2, 1, 0, 2, 2, 0),
    "fedsmoo": (2, 2, 2, 3, 2, 0), "fedlesam": (1, 1, 1, 1, 1, 0), "fedlesam_s": (2, 2, 2, 2, 1, 0),
    "fedlesam_d": (1, 1, 2, 2, 1, 0), "feddc": (2, 2, 2, 3, 1, 0),
    "lesam(mode='last_update')": (2, 1, 0, 2, 1, 0),  # ML 5.11, in code: no client memory, w^{t-1} - w^t goes down
    # MS 2
    "fednova": (1, 1, 0, 1, 1, 0), "fedgh": (1, 1, 0, 1, 1, 0), "fedavgm": (1, 1, 0, 2, 1, 0),
    "fedadam": (1, 1, 0, 3, 1, 0), "fedeve": (1, 1, 0, 2, 1, 0), "moon": (1, 1, 1, 1, 1, 2),
    # the last local model stays with its client; what is no state costs nothing
    "fedinit": (1, 1, 1, 1, 1, 0), "uniform": (1, 1, 0, 1, 1, 0), "clip + wd + momentum": (1, 1, 0, 1, 1, 0),
    "gc": (1, 1, 0, 1, 1, 0), "server(lr=0.5)": (1, 1, 0, 1, 1, 0),
    "scaffold + moon + sam": (2, 2, 2, 2, 2, 4),  # MOON's teachers once a pass
    "fedgloss": (1, 1, 1, 3, 2, 0), "gloss": (1, 1, 1, 3, 1, 0), "fedsol": (1, 1, 0, 1, 2, 1),
    "fedlc": (1, 1, 0, 1, 1, 0),
    "fedspeed_paper": (1, 1, 1, 1, 2, 0),  # the dual stays with its client and is sent inside the model
    "scaffold(option='I')": (2, 2, 1, 2, 2, 0),  # ML 5.3: one more pass
    "univarfl": (1, 1, 0, 1, 1, 0), "feduv": (1, 1, 0, 1, 1, 0), "feddecorr": (1, 1, 0, 1, 1, 0),
    "fedalign": (1, 1, 0, 1, 1, 1),  # the thin last stage
    "feddisco": (1, 1, 0, 1, 1, 0), "fedlws": (1, 1, 0, 1, 1, 0), "fedlaw": (1, 1, 0, 1, 1, 0),
    "fedeve_code": (1, 1, 0, 2, 1, 0), "fedyogi": (1, 1, 0, 3, 1, 0), "fedadagrad": (1, 1, 0, 3, 1, 0),
    "pcgrad": (1, 1, 0, 1, 1, 0), "median": (1, 1, 0, 1, 1, 0), "trimmed": (1, 1, 0, 1, 1, 0),
    "krum": (1, 1, 0, 1, 1, 0),
    "gc(per='live')": (1, 1, 0, 1, 1, 0), "l2": (1, 1, 0, 1, 1, 0), "sam + gcpert": (1, 1, 0, 1, 2, 0),
    "sam + l2pert": (1, 1, 0, 1, 2, 0), "sam + coordclip": (1, 1, 0, 1, 2, 0),
}  # fmt: skip


def test_every_preset_has_a_row():
    assert set(PRESETS) - set(COSTS) == {"fedper", "fedbabu", "fedawa"}  # these have tests of their own below


@pytest.mark.parametrize("text", COSTS)
def test_costs(text):
    """ML 2.3, MS 2; scalars may be added to whole vectors, padding may not."""
    got = sheet_of(text)
    assert got.model == 4 * D
    for name, times in zip(("down", "up", "memory", "state"), COSTS[text][:4], strict=True):
        assert 0 <= getattr(got, name) - times * got.model <= SCALARS, name
    assert (got.passes, got.forwards) == COSTS[text][4:]


SCALARS_UP = {"fedavg": 0, "fednova": 4, "fedeve": 4, "feddyn": 0, "scaffold": 0, "fedgh": 0, "fedawa": 0, "fedlc": 0}


@pytest.mark.parametrize("text, extra", SCALARS_UP.items())
def test_scalars_that_go_up(text, extra):
    """MS 2: FedNova sends one scalar more; AD A12: so does FedEve; the others none."""
    got = sheet_of(text)
    assert got.up - got.up // got.model * got.model == extra


def test_the_variance_of_eve():
    """MS 2: FedEve keeps 2 d + 1; Q, R and the gain of the last round stand beside them for a person to see."""
    assert sheet_of("fedeve").state == 4 * (2 * D + 1 + 3)


def test_the_logits_of_awa():
    """MS 2: N logits; and whether a client was seen. With Adam's state kept, its two moments and step count too."""
    assert sheet_of("fedawa").state == 4 * (D + 2 * 100)
    assert sheet_of("awa(keep=True)").state == 4 * (D + 5 * 100)


def test_a_frozen_head_does_not_travel():
    """MS 2, row Freeze/FedBABU: d - d_h both ways. FedUV's mode trains and sends it all the same."""
    got = sheet_of("fedbabu")
    assert got.down == got.up == got.state == 4 * (D - HEAD) and got.memory == 0
    assert sheet_of("freeze(mode='discard')").up == 4 * D


def test_only_law_needs_samples_at_the_server():
    """MS 2: FedLAW holds a proxy data set."""
    assert [text for text in COSTS if sheet_of(text).proxy] == ["fedlaw"]


STACKED = {"fedgh", "pcgrad", "median", "trimmed", "krum", "fedlws", "fedlaw", "fedawa"}


@pytest.mark.parametrize("text", [*COSTS, "fednova + gh", "eve + gh", "gh + scaffold", "fedper", "fedawa", "fedbabu"])
def test_who_needs_individual_updates(text):
    """DE 1: reading `deltas` is what needs individual updates; AD A12: FedEve takes its R from one scalar a client."""
    assert sheet_of(text).individual == (text in STACKED or "gh" in text.split(" + "))


def test_personal_layers_do_not_travel():
    """MS 2, row FedPer: down and up d - d_h, client state d_h, the server the shared part."""
    got = sheet_of("fedper")
    assert got.model == got.down == got.up == got.state == 4 * (D - HEAD)
    assert got.memory == 4 * HEAD
    more = sheet_of("scaffold + per")
    assert more.down == more.up == more.state == 2 * got.model


def test_personal_layers_by_name():
    """MS 11.2: any set of tensors may be personal; without it the row is FedAvg's."""
    names = NET.layout.names
    got = sheet_of(f"per(layers='{names[0]}')")
    assert got.memory == 4 * NET.layout.sizes[0] and got.up == 4 * (D - NET.layout.sizes[0])


def test_buffers_travel_both_ways():
    """MS 1: floating buffers are averaged and counters maximised, so both go up and down."""
    net = torch.nn.Sequential(torch.nn.Linear(25, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 4))
    task = Task.of(torch.nn.Sequential(torch.nn.Flatten(), net))
    got, buffers = sheet(parse("fedavg"), task, SAMPLE), 4 * 6 * 2 + 8
    assert (got.down - got.model, got.up - got.model, got.state - got.model, got.memory) == (buffers,) * 3 + (0,)


def test_precision_counts():
    """float64 costs twice as much in every row."""
    net = build("mlp", {"hidden": 20, "layers": 1}, (1, 5, 5), 4, 0)
    twice = sheet(parse("feddc"), Task.of(net, dtype=F64), SAMPLE._replace(x=SAMPLE.x.double()))
    once = sheet_of("feddc")
    assert (twice.down, twice.up, twice.memory, twice.state) == tuple(
        2 * n for n in (once.down, once.up, once.memory, once.state)
    )


@throwaway("forgetful")
class Forgetful(Part, Close):
    memory: ClassVar = {"kept": zeros, "lost": zeros}

    def close(self, delta, s):
        return delta, {}, {"kept": s.mem["kept"]}


@throwaway("silent")
class Silent(Scaffold):
    def close(self, delta, s):
        _, _, memory = super().close(delta, s)
        return delta, {"other": delta}, memory


@pytest.mark.parametrize(
    "part, words",
    [
        (Forgetful(), ("forgetful", "remembers", "['kept']", "['kept', 'lost']")),
        (Silent(), ("silent", "['other']", "['dc']")),
    ],
)
def test_a_part_that_forgets_a_key_is_refused(part, words):
    """The refusal names the part, what its close returns and what it declares."""
    with pytest.raises(Refused) as refused:
        sheet_of(sum_of("fedavg", part))
    assert all(word in str(refused.value) for word in words)


def test_a_forgetful_part_does_not_run_unnoticed():
    """Outside the sheet such a part fails on its first round rather than train with half a memory."""
    fed = quadratics(sum_of(Forgetful()))
    with pytest.raises((Refused, KeyError, RuntimeError)):
        fed.go(1)
