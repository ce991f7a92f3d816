"""Vision transformers: timm's vit_tiny_patch16_224 (FedFFT) and the smaller and wider one of FedAWA and FedLWS.

Attention is three matrix products: torch's own fused kernel would choose its way by device and type, and executors
could not be compared. It holds one number for every pair of tokens, 197 x 197 at most here.
FedFFT does not say how a network for 224 x 224 saw images of 32 x 32: they are enlarged here (bilinear), and
`vit(patch=4, size=32)` is the cheap way, with 5,362,762 parameters at ten classes instead of 5,526,346.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import Refused
from holdfast.models.layers import choice_problems, count_problems, image_problems


class Form(NamedTuple):
    dim: int
    depth: int
    heads: int
    each: int  # numbers of a head
    hidden: int
    patch: int
    size: int  # of the image; 0: its own
    bias: bool  # in the queries, keys and values
    eps: float
    dropout: float


FORMS = {
    "tiny16": Form(192, 12, 3, 64, 768, 16, 224, True, 1e-6, 0.0),
    "awa": Form(512, 6, 8, 64, 512, 4, 0, False, 1e-5, 0.1),
}


class Attention(nn.Module):
    def __init__(self, form: Form):
        super().__init__()
        self.heads, self.each = form.heads, form.each
        self.qkv = nn.Linear(form.dim, 3 * form.heads * form.each, bias=form.bias)
        self.out = nn.Linear(form.heads * form.each, form.dim)

    def forward(self, x: Tensor) -> Tensor:
        rows, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(rows, tokens, 3, self.heads, self.each).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q * self.each**-0.5 @ k.transpose(-2, -1)).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention and two linear layers, each behind a norm and added to what came in."""

    def __init__(self, form: Form):
        super().__init__()
        self.norm1 = nn.LayerNorm(form.dim, eps=form.eps)
        self.attention = Attention(form)
        self.norm2 = nn.LayerNorm(form.dim, eps=form.eps)
        self.inner = nn.Linear(form.dim, form.hidden)
        self.outer = nn.Linear(form.hidden, form.dim)
        self.drop1, self.drop2, self.drop3 = (nn.Dropout(form.dropout) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop1(self.attention(self.norm1(x)))
        return x + self.drop3(self.outer(self.drop2(functional.gelu(self.inner(self.norm2(x))))))


class Patches(nn.Module):
    """FedAWA's embedding: the numbers of a patch in the order row, column, channel, and one linear layer."""

    def __init__(self, channels: int, patch: int, dim: int):
        super().__init__()
        self.patch = patch
        self.linear = nn.Linear(channels * patch * patch, dim)

    def forward(self, x: Tensor) -> Tensor:
        p, (rows, channels, height, width) = self.patch, x.shape
        x = x.reshape(rows, channels, height // p, p, width // p, p).permute(0, 2, 4, 3, 5, 1)
        return self.linear(x.reshape(rows, (height // p) * (width // p), p * p * channels))


class ViT(nn.Module):
    """Patches, a class token, positions, layers, a norm; the features are the class token's."""

    def __init__(self, shape: tuple[int, ...], classes: int, form: Form, conv: bool):
        super().__init__()
        self.size = (form.size or shape[1], form.size or shape[2])
        tokens = (self.size[0] // form.patch) * (self.size[1] // form.patch)
        self.conv = conv
        self.patches = (
            nn.Conv2d(shape[0], form.dim, form.patch, form.patch) if conv else Patches(shape[0], form.patch, form.dim)
        )
        self.token = nn.Parameter(torch.randn(1, 1, form.dim))
        self.positions = nn.Parameter(torch.randn(1, tokens + 1, form.dim))
        self.drop = nn.Dropout(form.dropout)
        self.layers = nn.Sequential(*(Layer(form) for _ in range(form.depth)))
        self.norm = nn.LayerNorm(form.dim, eps=form.eps)
        self.head = nn.Linear(form.dim, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.shape[2:] != self.size:
            x = functional.interpolate(x, size=self.size, mode="bilinear", align_corners=False)
        x = self.patches(x)
        if self.conv:
            x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        features = self.norm(self.layers(self.drop(x))[:, 0])
        return self.head(features), features


def as_timm(net: ViT) -> None:
    """Truncated normal of .02 for linear layers and positions, zero biases, and a class token of about nothing.

    The convolution of the patches keeps PyTorch's own, as in timm.
    """
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    nn.init.trunc_normal_(net.positions, std=0.02)
    nn.init.normal_(net.token, std=1e-6)


def vit(shape: tuple[int, ...], classes: int, *, form: str = "tiny16", patch: int = 0, size: int = 0) -> nn.Module:
    """A vision transformer; form='tiny16': timm's vit_tiny_patch16_224, 'awa': FedAWA's.

    patch=0: the form's own; size=0: 224 for patches of 16, to which images are enlarged, else that of the images.
    """
    problems = image_problems("vit", shape) + choice_problems("vit", "form", form, tuple(FORMS))
    problems += count_problems("patch", patch, 0) + count_problems("size", size, 0)
    if problems:
        raise Refused(*problems)
    made = FORMS[form]
    patch = patch or made.patch
    size = size or (made.size if patch == made.patch else 0)
    sides = (size, size) if size else shape[1:]
    if any(side % patch for side in sides):
        raise Refused(f"patches of {patch} do not fill images of {sides[0]} x {sides[1]}: take patch= a divisor, "
                      f"or size= a multiple of {patch}, to which images are enlarged")  # fmt: skip
    net = ViT(shape, classes, made._replace(patch=patch, size=size), form == "tiny16")
    if form == "tiny16":
        as_timm(net)
    return net
