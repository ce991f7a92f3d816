"""The ordinary sequential loop that federated-learning code runs: one module, one optimiser, one client at a time.

FedAvg as it is usually written in PyTorch: load the global weights, zero_grad, forward, backward, optimizer step for
every batch, add the weights up. It stands here as the baseline of every speed claim and uses none of the library but
the same clients, batches and start.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from holdfast.data.plan import generator, sample
from holdfast.simulate import Federation


class Logits(nn.Module):
    """The library's models return (logits, features); this loop wants the logits."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.module(x)
        return out[0] if isinstance(out, tuple) else out


def train(module: nn.Module, fed: Federation, x: torch.Tensor, rounds: int) -> list[float]:
    """Accuracy after every round; `x` is the normalised training set."""
    model, loss = Logits(copy.deepcopy(module)), nn.CrossEntropyLoss()
    test, accuracies = fed.data.prepare(fed.data.test_x, torch.float32), list[float]()
    for t in range(rounds):
        start = {name: p.detach().clone() for name, p in model.state_dict().items()}
        total = {name: torch.zeros_like(p) for name, p in start.items()}
        ids = sample(fed.seed, t, len(fed.clients), fed.cohort)
        weight = sum(len(fed.clients[i]) for i in ids)
        for i in ids:
            model.load_state_dict(start)
            model.train()
            optimizer = torch.optim.SGD(model.parameters(), lr=fed.lr)
            for rows in fed.work.batches(fed.clients[i], generator(fed.seed, "batches", t, int(i))):
                index = torch.from_numpy(rows)
                optimizer.zero_grad()
                loss(model(x[index]), fed.data.y[index]).backward()
                optimizer.step()
            for name, p in model.state_dict().items():
                total[name] += p * (len(fed.clients[i]) / weight)
        model.load_state_dict(total)
        model.eval()
        with torch.no_grad():
            accuracies.append(float((model(test).argmax(1) == fed.data.test_y).double().mean()))
    return accuracies
