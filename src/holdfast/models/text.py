"""Models of words: a convolutional network over a text, and the mean of its words.

SpecGradFilter names no model for Yahoo! Answers; these have the layers of PFLlib's. Deviations from it: code 0 is
padding and counts as no word, so that the mean is over the words that there are; the maximum is over the row as it is,
padding included, as there; TextCNN leaves out half of its features, as Kim 2014 did, and `dropout=0.8` is PFLlib's;
no log-softmax before the cross-entropy, which would change nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.models.layers import code_problems, count_problems, share_problems

KERNELS = (3, 4, 5)


class Words(nn.Module):
    """A vector for every word, zeros for padding. `padding_idx` alone would let a filtered gradient move it."""

    def __init__(self, vocabulary: int, width: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[B, L] -> [B, L, width], and which are words."""
        words = (x != 0)[..., None]
        return self.embedding(x) * words, words


class TextCNN(nn.Module):
    """Three convolutions over 3, 4 and 5 words, ReLU, the maximum over the text, dropout, the head."""

    def __init__(self, vocabulary: int, classes: int, width: int, channels: int, dropout: float):
        super().__init__()
        self.words = Words(vocabulary, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, channels, kernel) for kernel in KERNELS)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(channels * len(KERNELS), classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        vectors = self.words(x)[0].transpose(1, 2)
        features = self.drop(torch.cat([conv(vectors).relu().amax(2) for conv in self.convs], 1))
        return self.head(features), features


class FastText(nn.Module):
    """The mean of the words' vectors, a linear layer, the head."""

    def __init__(self, vocabulary: int, classes: int, width: int):
        super().__init__()
        self.words = Words(vocabulary, width)
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        vectors, words = self.words(x)
        features = self.hidden(vectors.sum(1) / words.sum(1).clamp(min=1))
        return self.head(features), features


def textcnn(
    shape: tuple[int, ...], classes: int, codes: tuple[int, ...], *, width: int = 32, channels: int = 100,
    dropout: float = 0.5,
) -> nn.Module:  # fmt: skip
    """Convolutions over 3, 4 and 5 words and their maximum over the text; PFLlib's layers."""
    problems = code_problems("textcnn", shape, codes) + share_problems("dropout", dropout)
    problems += count_problems("width", width) + count_problems("channels", channels)
    if not problems and shape[0] < max(KERNELS):
        problems.append(f"textcnn needs texts of {max(KERNELS)} words or more, these have {shape[0]}: take fasttext")
    if problems:
        raise Refused(*problems)
    return TextCNN(codes[0], classes, width, channels, dropout)


def fasttext(shape: tuple[int, ...], classes: int, codes: tuple[int, ...], *, width: int = 32) -> nn.Module:
    """The mean of the words' vectors and two linear layers; PFLlib's."""
    problems = code_problems("fasttext", shape, codes) + count_problems("width", width)
    if problems:
        raise Refused(*problems)
    return FastText(codes[0], classes, width)
