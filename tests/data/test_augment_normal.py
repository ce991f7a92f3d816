"""Normalisation constants by name, against models-data-metrics.md B2 and methods-local.md 3.1, 3.4."""

import pytest
import torch

from holdfast.data.normal import CONSTANTS, normalised
from holdfast.data.sets import Dataset
from holdfast.errors import Refused

# Of pixels divided by 255, as the specs print them.
PRINTED = {
    "fl_simulator_cifar10": ((0.491, 0.482, 0.447), (0.247, 0.243, 0.262)),
    "fl_simulator_cifar100": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
    "fl_simulator_tiny": ((0.5,), (0.5,)),
    "feddecorr_cifar100": ((0.50707516, 0.48654887, 0.44091784), (0.26733429, 0.25643846, 0.27615047)),
    "moon_cifar100": ((0.50707516, 0.48654887, 0.44091784), (0.26733429, 0.25643846, 0.27615047)),
    "feduv_cifar10": ((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
    "feduv_stl10": ((0.5,), (0.5,)),
    "fedlaw": ((0.5,), (0.5,)),
    "fedgloss_cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2434, 0.2616)),
    "fedgloss_cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    "fedsam_cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "simple_fl_femnist": ((0.03650044,), (0.1602474,)),
}
RAW = {  # printed on 0 to 255
    "feddecorr_cifar10": ((125.3, 123.0, 113.9), (63.0, 62.1, 66.7)),
    "moon_cifar10": ((125.3, 123.0, 113.9), (63.0, 62.1, 66.7)),
    "simple_fl_cifar": ((120.70748,), (64.150024,)),
}


@pytest.mark.parametrize("name", [*PRINTED, *RAW])
def test_constants_are_the_printed_ones_on_raw_pixels(name):
    wanted = RAW.get(name) or tuple(tuple(255 * v for v in row) for row in PRINTED[name])
    for found, expected in zip(normalised(name), wanted, strict=True):
        assert found == pytest.approx(expected, rel=2e-8)  # the specs print eight digits


def test_fedsol_is_the_printed_one_to_its_four_digits():
    mean, std = normalised("fedsol_cifar10")
    assert mean == pytest.approx([255 * v for v in (0.4914, 0.4822, 0.4465)], abs=255 * 5e-5)
    assert std == pytest.approx([255 * v for v in (0.2470, 0.2435, 0.2616)], abs=255 * 5e-5)


@pytest.mark.parametrize("name", CONSTANTS)
def test_every_name_normalises_a_data_set(name):
    mean, std = normalised(name)
    x = torch.randint(0, 256, (4, 1 if "femnist" in name or "mnist" in name else 3, 2, 2), dtype=torch.uint8)
    data = Dataset.of(x, torch.zeros(4).long(), x, torch.zeros(4).long(), mean=mean, std=std)
    by_hand = (x.double() / 255 - torch.tensor(CONSTANTS[name][0]).double().view(-1, 1, 1)) / torch.tensor(
        CONSTANTS[name][1]
    ).double().view(-1, 1, 1)
    assert torch.allclose(data.prepare(x, torch.float64), by_hand, atol=1e-6)


def test_turned_over_femnist_gives_both_published_forms():
    # B2: simple-FL ((1 - pixel) - .03650044) / .1602474, wenzhu (.5 - pixel) / .5; stored here as 255 - pixel.
    pixel = torch.linspace(0, 1, 256, dtype=torch.float64)
    for name, wanted in (
        ("simple_fl_femnist", (1 - pixel - 0.03650044) / 0.1602474),
        ("wenzhu_femnist", (0.5 - pixel) / 0.5),
    ):
        (mean,), (std,) = normalised(name)
        assert torch.allclose((255 - 255 * pixel - mean) / std, wanted, atol=1e-12)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(Refused, match="did you mean fl_simulator_cifar10"):
        normalised("fl_simulator_cifar1O")
