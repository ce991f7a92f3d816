"""The zoo: a name and options become an `nn.Module` with weights drawn from a seed."""

from holdfast.models.zoo import MODELS, build

__all__ = ["MODELS", "build"]
