"""Normalisation constants by code base and data set, as each code base writes them.

`holdfast` reads them as (x - mean) / std on raw pixels, 0 to 255, one number a channel or one for all.
"""

from __future__ import annotations

from holdfast.data.named import nearest
from holdfast.errors import Refused

Constants = tuple[tuple[float, ...], tuple[float, ...]]
RAW = 255.0
HALF: Constants = ((0.5,), (0.5,))
FEDDECORR_CIFAR10: Constants = (
    (125.3 / 255, 123.0 / 255, 113.9 / 255),
    (63.0 / 255, 62.1 / 255, 66.7 / 255),
)
FEDDECORR_CIFAR100: Constants = (
    (0.5070751592371323, 0.48654887331495095, 0.4409178433670343),
    (0.2673342858792401, 0.2564384629170883, 0.27615047132568404),
)
FL_SIMULATOR_CIFAR10: Constants = ((0.491, 0.482, 0.447), (0.247, 0.243, 0.262))
FL_SIMULATOR_CIFAR100: Constants = ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))

# Specs: models-data-metrics.md B2 and methods-local.md 3.1, 3.4; on pixels divided by 255.
CONSTANTS: dict[str, Constants] = {
    "half": HALF,
    "feddecorr_cifar10": FEDDECORR_CIFAR10,
    "feddecorr_cifar100": FEDDECORR_CIFAR100,
    "feddecorr_tiny": HALF,
    "moon_cifar10": FEDDECORR_CIFAR10,
    "moon_cifar100": FEDDECORR_CIFAR100,
    "moon_tiny": HALF,
    "fl_simulator_mnist": ((0.1307,), (0.3081,)),
    "fl_simulator_cifar10": FL_SIMULATOR_CIFAR10,
    "fl_simulator_cifar100": FL_SIMULATOR_CIFAR100,
    "fl_simulator_tiny": HALF,
    "fedlaw": HALF,
    "fedawa": HALF,
    "fedlws": HALF,
    "feduv_cifar10": ((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
    "feduv_stl10": HALF,
    "fedgloss_cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2434, 0.2616)),
    "fedgloss_cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    "fedsam_cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "fedsol_cifar10": ((0.49139968, 0.48215827, 0.44653124), (0.24703233, 0.24348505, 0.26158768)),
    "simple_fl_cifar": ((120.70748 / 255,), (64.150024 / 255,)),
    "simple_fl_femnist": ((0.03650044,), (0.1602474,)),
    "wenzhu_femnist": HALF,
}
INK = "of 1 - pixel, ink high, as its loader turns the image over"
WHOSE = {  # constants, whose they are
    "half": "a half and a half, for any data",
    "feddecorr_cifar10": "FedDecorr on CIFAR-10, which FedGH builds on",
    "feddecorr_cifar100": "FedDecorr on CIFAR-100, which FedGH builds on",
    "feddecorr_tiny": "FedDecorr on Tiny-ImageNet, which FedGH builds on",
    "moon_cifar10": "MOON on CIFAR-10",
    "moon_cifar100": "MOON on CIFAR-100",
    "moon_tiny": "MOON on Tiny-ImageNet",
    "fl_simulator_mnist": "FL-Simulator on MNIST",
    "fl_simulator_cifar10": "FL-Simulator (FedSMOO), FedLESAM, FedDyn and FedDC on CIFAR-10",
    "fl_simulator_cifar100": "FL-Simulator (FedSMOO), FedLESAM, FedDyn and FedDC on CIFAR-100",
    "fl_simulator_tiny": "FL-Simulator and FedLESAM on Tiny-ImageNet",
    "fedlaw": "FedLAW on every data set",
    "fedawa": "FedAWA on every data set",
    "fedlws": "FedLWS on every data set",
    "feduv_cifar10": "FedUV on CIFAR-10",
    "feduv_stl10": "FedUV on STL-10",
    "fedgloss_cifar10": "FedGloSS on CIFAR-10",
    "fedgloss_cifar100": "FedGloSS on CIFAR-100",
    "fedsam_cifar10": "FedSAM on CIFAR-10",
    "fedsol_cifar10": "FedSOL on CIFAR-10",
    "simple_fl_cifar": "simple-FL (FedEve) on CIFAR; one number for all channels",
    "simple_fl_femnist": f"simple-FL (FedEve) on FEMNIST; {INK}",
    "wenzhu_femnist": f"wenzhu23333's repository (FedFFT) on FEMNIST, written there (0.5 - pixel)/0.5; {INK}",
}


def normalised(name: str) -> Constants:
    """(mean, std) of this name on raw pixels: `normalised("fl_simulator_cifar10")`.

    Those of FEMNIST are of images with high ink (255 - pixel where the file has a white ground).
    """
    if name not in CONSTANTS:
        raise Refused(f"unknown normalisation {name!r}: {nearest(name, CONSTANTS)}")
    mean, std = CONSTANTS[name]
    return tuple(RAW * m for m in mean), tuple(RAW * s for s in std)
