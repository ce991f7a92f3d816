"""What a data set asks of a model: how many numbers a sample, and which loss on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from holdfast.task import cross_entropy


class Kind(NamedTuple):
    """`loss` is a number a sample; `answer` the label that the model's numbers mean."""

    loss: Callable[[Tensor, Tensor], Tensor]
    answer: Callable[[Tensor], Tensor]
    single: bool = False  # one number a sample, whatever the number of classes


def click_loss(logits: Tensor, y: Tensor) -> Tensor:
    """Of one number a sample, the log odds of a click."""
    return binary_cross_entropy_with_logits(logits[:, 0], y.to(logits.dtype), reduction="none")


KINDS: dict[str, Kind] = {
    "classes": Kind(cross_entropy, lambda logits: logits.argmax(1)),
    "next": Kind(cross_entropy, lambda logits: logits.argmax(1)),  # the next character is a class
    "clicks": Kind(click_loss, lambda logits: (logits[:, 0] > 0).long(), single=True),
}
