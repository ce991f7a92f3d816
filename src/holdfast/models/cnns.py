"""The plain convolutional networks of the papers' code: convolutions, poolings, hidden layers, the head.

Where the last of these are linear layers on all pixels, the network is made for the size of its images, and the
parameter counts hold for the size that the paper used.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.models.layers import (
    Window,
    after,
    choice_problems,
    count_problems,
    glorot,
    image_problems,
    norm_layer,
    norm_problems,
    projector,
)

POOL: Window = (2, 2, 0)


class Plain(nn.Module):
    """Convolutions with ReLU, `pools` saying after which a 2 x 2 max-pool stands; hidden layers; the head."""

    def __init__(self, body: list[nn.Module], hidden: list[nn.Module], features: int, classes: int):
        super().__init__()
        self.body = nn.Sequential(*body)
        self.hidden = nn.Sequential(*hidden)
        self.head = nn.Linear(features, classes)
        last = max(i for i, layer in enumerate(body) if isinstance(layer, nn.Conv2d))
        self.last_stage = (f"body.{last}", f"body.{last + 1}")  # the last convolution with its ReLU

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.hidden(self.body(x).flatten(1))
        return self.head(features), features


def checked(model: str, shape: tuple[int, ...], windows: tuple[Window, ...], *more: str) -> int:
    """The number of pixels that the windows leave, or what is wrong."""
    problems = [*image_problems(model, shape, windows), *more]
    if problems:
        raise Refused(*problems)
    return after(shape[1], windows) * after(shape[2], windows)


def dense(*widths: int) -> list[nn.Module]:
    """Linear layers with ReLU."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return layers


def twoconv(shape: tuple[int, ...], classes: int, *, form: str = "reddi") -> nn.Module:
    """Two convolutions; form='reddi': Reddi et al. 2021 (FedGH's CIFAR-10 network), 'eve': FedEve's later CNN.

    'reddi' has dropout and Glorot's normal initialisation, 'eve' neither.
    """
    windows = ((3, 1, 0), (3, 1, 0), POOL)
    pixels = checked("twoconv", shape, windows, *choice_problems("twoconv", "form", form, ("reddi", "eve")))
    body: list[nn.Module] = [nn.Conv2d(shape[0], 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)]
    hidden = dense(64 * pixels, 128)
    if form == "reddi":
        body, hidden = [*body, nn.Dropout(0.25)], [*hidden, nn.Dropout(0.5)]
    made = Plain(body, hidden, 128, classes)
    if form == "reddi":
        glorot(made, normal=True)
    return made


def moon_cnn(shape: tuple[int, ...], classes: int, *, projector: bool = True) -> nn.Module:
    """MOON's simple CNN; with the projector the features are its 256 outputs, on which MOON contrasts."""
    windows = ((5, 1, 0), POOL, (5, 1, 0), POOL)
    problems = [] if isinstance(projector, bool) else [f"projector={projector!r} is neither True nor False"]
    pixels = checked("moon_cnn", shape, windows, *problems)
    body = [
        nn.Conv2d(shape[0], 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
    ]  # fmt: skip
    hidden = dense(16 * pixels, 120, 84)
    if projector:
        hidden += [*dense(84, 84), nn.Linear(84, 256)]
    return Plain(body, hidden, 256 if projector else 84, classes)


def dyn_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """FedDyn's CNN, which FedSAM and FedGloSS have too."""
    pixels = checked("dyn_cnn", shape, ((5, 1, 0), POOL, (5, 1, 0), POOL))
    body = [
        nn.Conv2d(shape[0], 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 64, 5), nn.ReLU(), nn.MaxPool2d(2),
    ]  # fmt: skip
    return Plain(body, dense(64 * pixels, 384, 192), 192, classes)


def lenet(shape: tuple[int, ...], classes: int, *, form: str = "eve") -> nn.Module:
    """A LeNet; form='eve': what FedEve's code calls LeNet-5, 6-10-100 with dropout, 'classic': LeCun's 6-16-120-84."""
    kernel, padding, channels = (3, 0, 10) if form == "eve" else (5, 2, 16)
    windows = ((kernel, 1, padding), POOL, (kernel, 1, 0), POOL)
    pixels = checked("lenet", shape, windows, *choice_problems("lenet", "form", form, ("eve", "classic")))
    body = [
        nn.Conv2d(shape[0], 6, kernel, padding=padding), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, channels, kernel), nn.ReLU(), nn.MaxPool2d(2),
    ]  # fmt: skip
    if form == "classic":
        return Plain(body, dense(channels * pixels, 120, 84), 84, classes)
    hidden = [nn.Dropout(0.5), *dense(channels * pixels, 100), nn.Dropout(0.5)]
    return Plain(body, hidden, 100, classes)


def leaf_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """LEAF's CNN for FEMNIST, with TensorFlow's initialisation: Glorot uniform, zero biases."""
    pixels = checked("leaf_cnn", shape, ((5, 1, 2), POOL, (5, 1, 2), POOL))
    body = [
        nn.Conv2d(shape[0], 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    ]  # fmt: skip
    made = Plain(body, dense(64 * pixels, 2048), 2048, classes)
    glorot(made)
    return made


def wenzhu_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """The CNN for FEMNIST of wenzhu23333's repository, on which FedFFT's text and handwriting runs rest."""
    pixels = checked("wenzhu_cnn", shape, ((7, 1, 3), POOL, (3, 1, 1), POOL))
    body = [
        nn.Conv2d(shape[0], 32, 7, padding=3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    ]  # fmt: skip
    return Plain(body, [], 64 * pixels, classes)


# kernel, channels, stride; no padding, no bias, each with norm and ReLU
UV = ((3, 16, 1), (1, 16, 1), (3, 32, 2), (3, 32, 1), (1, 32, 1), (3, 64, 2), (3, 64, 1), (1, 64, 1))


class UvCnn(nn.Module):
    """Eight convolutions, a global mean, the projector, the head."""

    def __init__(self, shape: tuple[int, ...], classes: int, projected: int, norm: str, groups: int):
        super().__init__()
        layers, inputs = [], shape[0]
        for kernel, outputs, stride in UV:
            conv = nn.Conv2d(inputs, outputs, kernel, stride, bias=False)
            layers.append(nn.Sequential(conv, norm_layer(norm, outputs, groups), nn.ReLU()))
            inputs = outputs
        self.body = nn.Sequential(*layers)
        self.projector = projector(inputs, projected, norm, groups)
        self.head = nn.Linear(projected, classes)
        self.last_stage = ("body.5", "body.6", "body.7")  # from the last stride on

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.projector(self.body(x).mean((2, 3)))
        return self.head(features), features


def uv_cnn(
    shape: tuple[int, ...], classes: int, *, projector: int = 256, norm: str = "bn", groups: int = 2
) -> nn.Module:
    """FedUV's and UniVarFL's small CNN for STL-10; the features are what the projector gives."""
    problems = image_problems("uv_cnn", shape, [(kernel, stride, 0) for kernel, _, stride in UV])
    problems += count_problems("projector", projector) + norm_problems("uv_cnn", norm, groups, 16, ("gn", "bn"))
    if not problems:
        problems = norm_problems("uv_cnn's projector", norm, groups, projector, ("gn", "bn"))
    if problems:
        raise Refused(*problems)
    return UvCnn(shape, classes, projector, norm, groups)
