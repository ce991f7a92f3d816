"""Long short-term memory in plain tensor operations, and the character model of Shakespeare's plays built on it."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from holdfast.errors import Refused
from holdfast.models.layers import choice_problems, code_problems, glorot


class LSTM(nn.Module):
    """torch.nn.LSTM(batch_first=True): its parameter names, gate order, initialisation and, to rounding, its values.

    Why not torch's: its fused kernel takes one set of weights a call, so torch.func.vmap has no rule for weights that
    differ by client, and the batched executor could not run it. Here a layer takes one matrix product for all inputs
    and one a time step. `biases=1` and `forget=1` are TensorFlow's BasicLSTMCell: one bias a gate, and a constant that
    the forget gate adds.
    """

    def __init__(self, inputs: int, hidden: int, layers: int, biases: int = 2, forget: float = 0.0):
        super().__init__()
        self.hidden, self.layers, self.biases, self.forget = hidden, layers, biases, forget
        bound = 1 / math.sqrt(hidden)
        for k in range(layers):
            shapes = {"weight_ih": (4 * hidden, hidden if k else inputs), "weight_hh": (4 * hidden, hidden)}
            shapes |= {name: (4 * hidden,) for name in ("bias_ih", "bias_hh")[:biases]}
            for name, shape in shapes.items():
                self.register_parameter(f"{name}_l{k}", nn.Parameter(torch.empty(shape).uniform_(-bound, bound)))

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, inputs] -> [B, T, hidden], what the last layer puts out at every step."""
        for k in range(self.layers):
            bias = self.own("bias_ih", k) + self.own("bias_hh", k) if self.biases == 2 else self.own("bias_ih", k)
            x = self.run(nn.functional.linear(x, self.own("weight_ih", k), bias), self.own("weight_hh", k))
        return x

    def own(self, name: str, layer: int) -> Tensor:
        return getattr(self, f"{name}_l{layer}")  # in a call by function no nn.Parameter stands there

    def run(self, given: Tensor, weight: Tensor) -> Tensor:
        turned = weight.T  # once, and its gradients have one place to add up in
        h = c = given.new_zeros(len(given), self.hidden)
        out: list[Tensor] = []
        for t in range(given.shape[1]):
            i, f, g, o = (given[:, t] + h @ turned).chunk(4, 1)
            c = (f + self.forget).sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        return torch.stack(out, 1)

    def as_tensorflow(self) -> None:
        """Glorot uniform for the joint kernel of inputs and state, zero biases."""
        for k in range(self.layers):
            weights = [self.own(name, k) for name in ("weight_ih", "weight_hh")]
            bound = math.sqrt(6 / (sum(w.shape[1] for w in weights) + 4 * self.hidden))
            for weight in weights:
                nn.init.uniform_(weight, -bound, bound)
            nn.init.zeros_(self.own("bias_ih", k))


class Form(NamedTuple):
    hidden: int
    biases: int = 2
    dropout: float = 0.0


FORMS = {
    "wenzhu": Form(256, dropout=0.5),  # wenzhu23333's repository, FedFFT's Shakespeare
    "leaf": Form(256, biases=1),  # Caldas et al. 2018, TensorFlow
    "dyn": Form(100),  # FedDyn
}


class CharLSTM(nn.Module):
    """An embedding of 8 numbers, two LSTM layers, dropout, the head on the last step: the character that follows."""

    def __init__(self, vocabulary: int, classes: int, form: Form, tensorflow: bool):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 8)
        self.lstm = LSTM(8, form.hidden, 2, form.biases, float(tensorflow))
        self.drop = nn.Dropout(form.dropout)
        self.head = nn.Linear(form.hidden, classes)
        if tensorflow:
            nn.init.xavier_uniform_(self.embedding.weight)
            self.lstm.as_tensorflow()
            glorot(self.head)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.drop(self.lstm(self.embedding(x))[:, -1])
        return self.head(features), features


def charlstm(shape: tuple[int, ...], classes: int, codes: tuple[int, ...], *, form: str = "wenzhu") -> nn.Module:
    """An LSTM of two layers for characters; form='wenzhu': 256 units, dropout .5, 'leaf': LEAF's, 'dyn': FedDyn's.

    'leaf' has 256 units, one bias a gate and TensorFlow's initialisation, 'dyn' 100 units; both have no dropout.
    """
    problems = code_problems("charlstm", shape, codes) + choice_problems("charlstm", "form", form, tuple(FORMS))
    if problems:
        raise Refused(*problems)
    return CharLSTM(codes[0], classes, FORMS[form], form == "leaf")
