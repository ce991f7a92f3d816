"""Where the papers' models start: distributions of the first weights, layer by layer (models-data-metrics A3)."""

import math

import pytest
import torch
from torch import nn

from holdfast.models import build

torch.set_num_threads(1)
CIFAR = (3, 32, 32)
ENOUGH = 2000  # numbers in a tensor whose standard deviation is looked at: 5 sigma of it are 8 %


def linears(model):
    return [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Conv1d | nn.Linear)]


def fans(layer):
    area = math.prod(layer.weight.shape[2:])
    return layer.weight.shape[1] * area, layer.weight.shape[0] * area


def assert_spread(weight, std, bound=None):
    weight = weight.detach()
    if weight.numel() >= ENOUGH:
        assert float(weight.std()) == pytest.approx(std, rel=0.08)
        assert abs(float(weight.mean())) < 5 * std / math.sqrt(weight.numel())
    if bound is not None:
        assert float(weight.abs().max()) <= bound * (1 + 1e-6)
        if weight.numel() >= ENOUGH:
            assert float(weight.abs().max()) >= 0.97 * bound


def assert_norms_neutral(model):
    norms = [m for m in model.modules() if isinstance(m, nn.GroupNorm | nn.BatchNorm1d | nn.BatchNorm2d | nn.LayerNorm)]
    assert all(bool((m.weight == 1).all()) and not m.bias.any() for m in norms)


def assert_torchs_own(layer):
    """PyTorch: uniform in +-1/sqrt(fan in), weights and biases."""
    bound = 1 / math.sqrt(fans(layer)[0])
    assert_spread(layer.weight, bound / math.sqrt(3), bound)
    assert layer.bias is None or float(layer.bias.detach().abs().max()) <= bound


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wrn56", {}), ("resnet18", {"stem": "3x3"}), ("resnet18", {"stem": "awa"}), ("uv_resnet18", {}),
        ("uv_cnn", {}), ("densenet121", {}), ("mobilenetv2", {}), ("moon_cnn", {}), ("dyn_cnn", {}),
        ("lenet", {}), ("wenzhu_cnn", {}), ("twoconv", {"form": "eve"}), ("vit", {"form": "awa"}),
    ],
)  # fmt: skip
def test_models_that_keep_pytorchs_initialisation(name, options):
    model = build(name, options, CIFAR, 10, 0)
    for layer in linears(model):
        assert_torchs_own(layer)
    assert_norms_neutral(model)


def test_resnet18_has_torchvisions():
    # methods-local 3.5: Kaiming normal of the fan out, the head PyTorch's, 62 tensors, ||w0|| = 111.7.
    model = build("resnet18", {}, CIFAR, 10, 0)
    for layer in linears(model)[:-1]:
        assert_spread(layer.weight, math.sqrt(2 / fans(layer)[1]))
    assert_torchs_own(linears(model)[-1])
    assert_norms_neutral(model)
    weights = list(model.parameters())
    assert len(weights) == 62
    assert float(torch.cat([w.detach().flatten() for w in weights]).norm()) == pytest.approx(111.7, abs=0.3)


def test_resnet20_with_free_shortcuts_has_kaimings():
    # A3: "option-A versions Kaiming normal on conv and linear", of the fan in.
    model = build("resnet20", {"shortcut": "zero"}, CIFAR, 100, 0)
    for layer in linears(model):
        assert_spread(layer.weight, math.sqrt(2 / fans(layer)[0]))
    assert_norms_neutral(model)


def test_twoconv_has_keras_glorot_normal():
    # A3: "Glorot normal weights, zero biases"; Keras cuts at two standard deviations of the wider normal.
    for layer in linears(build("twoconv", {}, CIFAR, 10, 0)):
        std = math.sqrt(2 / sum(fans(layer)))
        assert_spread(layer.weight, std, 2 * std / 0.87962566103423978)
        assert layer.bias is not None and not layer.bias.any()


def test_leaf_cnn_has_tensorflows():
    # tf.layers: Glorot uniform kernels, zero biases (LEAF models/femnist/cnn.py gives no other).
    for layer in linears(build("leaf_cnn", {}, (1, 28, 28), 62, 0)):
        bound = math.sqrt(6 / sum(fans(layer)))
        assert_spread(layer.weight, bound / math.sqrt(3), bound)
        assert layer.bias is not None and not layer.bias.any()


def test_tiny_vit_has_timms():
    # A3 (a): "Init truncated normal 0.02, zero biases"; timm: class token N(0, 1e-6), the patches PyTorch's.
    model = build("vit", {}, CIFAR, 10, 0)
    patches, *rest = linears(model)
    assert_torchs_own(patches)
    for layer in rest:
        assert_spread(layer.weight, 0.02)
        assert layer.bias is not None and not layer.bias.any()
    assert_spread(model.get_parameter("positions"), 0.02)
    assert 0 < float(model.get_parameter("token").abs().max()) < 1e-5
    assert_norms_neutral(model)


def test_awas_vit_starts_with_unit_positions():
    # A3 (b): "positions and class token N(0,1)".
    model = build("vit", {"form": "awa"}, CIFAR, 10, 0)
    assert_spread(model.get_parameter("positions"), 1.0)
    assert float(model.get_parameter("token").std()) == pytest.approx(1, rel=0.2)  # 512 numbers: 5 sigma are 16 %


@pytest.mark.parametrize(("form", "hidden"), [("wenzhu", 256), ("dyn", 100)])
def test_charlstm_starts_as_pytorchs(form, hidden):
    # A3: "Embedding N(0,1), LSTM U(+-1/16)", which is 1/sqrt(256).
    model = build("charlstm", {"form": form}, (80,), 80, 0, (3000,))
    assert_spread(model.get_parameter("embedding.weight"), 1.0)
    bound = 1 / math.sqrt(hidden)
    for tensor in model.get_submodule("lstm").parameters():
        assert_spread(tensor, bound / math.sqrt(3), bound)
    assert_torchs_own(linears(model)[-1])


def test_leafs_charlstm_starts_as_tensorflows():
    # BasicLSTMCell: one kernel [inputs + state, 4 units], Glorot uniform, zero biases; embedding Glorot uniform.
    model = build("charlstm", {"form": "leaf"}, (80,), 80, 0, (3000,))
    for layer, inputs in enumerate((8, 256)):
        bound = math.sqrt(6 / (inputs + 256 + 4 * 256))
        for name in ("weight_ih", "weight_hh"):
            assert_spread(model.get_parameter(f"lstm.{name}_l{layer}"), bound / math.sqrt(3), bound)
        assert not model.get_parameter(f"lstm.bias_ih_l{layer}").any()
    bound = math.sqrt(6 / (3000 + 8))
    assert_spread(model.get_parameter("embedding.weight"), bound / math.sqrt(3), bound)
    assert not model.get_parameter("head.bias").any()


@pytest.mark.parametrize(("name", "codes"), [("textcnn", (500,)), ("fasttext", (500,)), ("din", (300,) * 16)])
def test_embeddings_start_standard_normal(name, codes):
    model = build(name, {}, (16,), 2, 0, codes)
    for table in (m for m in model.modules() if isinstance(m, nn.Embedding)):
        assert_spread(table.weight, 1.0)
    for layer in linears(model):
        assert_torchs_own(layer)
