"""Toy networks gain nothing from threads, and pytest-xdist already fills the cores."""

import torch

torch.set_num_threads(1)
