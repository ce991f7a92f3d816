"""Models: sizes, what forward returns, seeds, vmap, what is refused."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from holdfast.errors import Refused
from holdfast.models import build
from holdfast.models.layers import pool_to

torch.set_num_threads(1)
DIGITS = (1, 8, 8)
ALL = [
    ("logreg", {}),
    ("mlp", {"hidden": 8, "layers": 3}),
    ("cnn", {}),
    ("cnn", {"norm": "bn"}),
    ("cnn", {"norm": "none", "width": 3}),
    ("resnet20", {}),
    ("resnet20", {"norm": "bn"}),
]


def size(name, options, shape, classes):
    return sum(p.numel() for p in build(name, options, shape, classes, 0).parameters())


@pytest.mark.parametrize("norm", ["gn", "bn"])
@pytest.mark.parametrize(("classes", "expected"), [(10, 272_474), (100, 278_324), (200, 284_824), (8, 272_344)])
def test_resnet20_has_the_published_size(norm, classes, expected):
    # specs/models-data-metrics.md A2, row 'ResNet-20, 1x1-conv shortcuts'.
    assert size("resnet20", {"norm": norm}, (3, 32, 32), classes) == expected


def test_resnet20_starts_where_the_spec_says():
    # specs/methods-local.md 3.5: 65 tensors, ||w0|| = 32.4 with PyTorch's default initialisation.
    weights = list(build("resnet20", {}, (3, 32, 32), 10, 0).parameters())
    assert len(weights) == 65
    assert float(torch.cat([w.detach().flatten() for w in weights]).norm()) == pytest.approx(32.4, abs=0.1)


def test_resnet20_halves_the_image_twice():
    # models-data-metrics A3: three stages of three blocks, the first block of stages 2 and 3 with stride 2.
    model, sizes = build("resnet20", {}, (3, 32, 32), 10, 0), []
    for block in model.get_submodule("blocks").children():
        block.register_forward_hook(lambda _, __, out: sizes.append(tuple(out.shape[1:])))
    model(torch.randn(1, 3, 32, 32))
    assert sizes == [(16, 32, 32)] * 3 + [(32, 16, 16)] * 3 + [(64, 8, 8)] * 3


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        # Counted by hand from the layer lists, inputs 1 x 8 x 8 and ten classes.
        ("logreg", {}, 64 * 10 + 10),
        ("mlp", {}, 2 * (64 * 64 + 64) + 64 * 10 + 10),
        ("mlp", {"hidden": 5, "layers": 1}, 64 * 5 + 5 + 5 * 10 + 10),
        ("cnn", {}, 9 * 16 + 2 * 16 + 9 * 16 * 32 + 2 * 32 + 32 * 16 * 64 + 64 + 64 * 10 + 10),
        ("cnn", {"norm": "none"}, 9 * 16 + 16 + 9 * 16 * 32 + 32 + 32 * 16 * 64 + 64 + 64 * 10 + 10),
    ],
)
def test_small_models_have_the_size_of_their_layers(name, options, expected):
    assert size(name, options, DIGITS, 10) == expected


@pytest.mark.parametrize(("name", "options"), ALL)
def test_features_are_the_input_of_the_head(name, options):
    model = build(name, options, DIGITS, 10, 0).eval()
    head = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    logits, features = model(torch.randn(5, *DIGITS))
    assert logits.shape == (5, 10) and features.ndim == 2
    assert torch.equal(logits, head(features))


@pytest.mark.parametrize(("name", "options"), ALL)
def test_vmap_over_stacked_parameters_equals_a_loop(name, options):
    # The loop is the definition; 1e-12 is the bound of design/decisions.md 10.
    models = [build(name, options, DIGITS, 10, seed).double() for seed in range(3)]
    x = torch.randn(3, 4, *DIGITS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    params, buffers = stack_module_state(models)
    mapped = vmap(lambda p, b, rows: functional_call(models[0], (p, b), (rows,)))(params, buffers, x)
    for i, model in enumerate(models):
        for one, many in zip(model(x[i]), mapped, strict=True):
            assert torch.allclose(one, many[i], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["cnn", "resnet20"])
def test_gradients_under_vmap_trace_without_a_break(name):
    # A break raises under fullgraph=True; the values are those of the untraced function.
    model = build(name, {}, DIGITS, 10, 0).double()
    params = stack_module_state([model, build(name, {}, DIGITS, 10, 1).double()])[0]
    x = torch.randn(2, 3, *DIGITS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def gradient(p, rows):
        return torch.func.grad(lambda q: functional_call(model, q, (rows,))[0].square().mean())(p)

    plain = vmap(gradient)(params, x)
    traced = torch.compile(vmap(gradient), backend="eager", fullgraph=True, dynamic=False)(params, x)
    for key, value in plain.items():
        assert torch.allclose(value, traced[key], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (7, 7), (8, 8), (16, 9)])
def test_pooling_is_torchs_adaptive_pooling(shape):
    x = torch.randn(2, 3, *shape, dtype=torch.float64)
    assert torch.allclose(pool_to(x, 4), F.adaptive_avg_pool2d(x, 4), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["cnn", "resnet20"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 9), (1, 28, 28), (3, 64, 64)])
def test_any_image_size_works(name, shape):
    logits, _ = build(name, {}, shape, 7, 0)(torch.randn(1, *shape))
    assert logits.shape == (1, 7)


def test_same_seed_same_weights_and_the_global_generator_untouched():
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = build("cnn", {}, DIGITS, 10, 0)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.rand(5)
    again, other = build("cnn", {}, DIGITS, 10, 0), build("cnn", {}, DIGITS, 10, 1)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


@pytest.mark.parametrize(
    ("name", "options", "shape", "part"),
    [
        ("resnet21", {}, DIGITS, "unknown model 'resnet21': did you mean resnet20"),
        ("cnn", {"widht": 3}, DIGITS, "cnn has no option 'widht': did you mean width"),
        ("cnn", {"norm": "ln"}, DIGITS, "cnn has no norm 'ln'"),
        ("resnet20", {"norm": "none"}, DIGITS, "resnet20 has no norm 'none'"),
        ("cnn", {"groups": 3}, DIGITS, "groups=3 does not divide the 16 channels of cnn: take one of 1, 2, 4, 8, 16"),
        ("resnet20", {"groups": 0}, DIGITS, "groups=0 is not a whole number above 0"),
        ("resnet20", {}, (64,), "needs images"),
        ("mlp", {"hidden": 2.5}, DIGITS, "hidden=2.5 is not a whole number"),
        ("logreg", {}, (), "is no sample shape"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(name, options, shape, part):
    with pytest.raises(Refused) as caught:
        build(name, options, shape, 10, 0)
    assert part in str(caught.value)


def test_all_problems_at_once():
    with pytest.raises(Refused) as caught:
        build("cnn", {"width": 15}, (64,), 10, 0)
    assert len(str(caught.value).splitlines()) == 2


def test_a_model_of_the_users_own(tmp_path, monkeypatch):
    lines = [
        "import math, torch.nn as nn",
        "def net(shape, classes, depth=1): return nn.Linear(math.prod(shape), classes * depth)",
        "def fixed(): return nn.Linear(2, 3)",
        "def wrong(): return 3",
    ]
    (tmp_path / "holdfast_test_models.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    first, again = (build("holdfast_test_models:net", {"depth": 2}, DIGITS, 10, 4) for _ in range(2))
    weight = next(first.parameters())
    assert weight.shape == (20, 64) and torch.equal(weight, next(again.parameters()))
    assert isinstance(build("holdfast_test_models:fixed", {}, DIGITS, 10, 0), nn.Linear)
    with pytest.raises(Refused, match="returned an object of type int"):
        build("holdfast_test_models:wrong", {}, DIGITS, 10, 0)
    with pytest.raises(Refused, match="has no option 'deep'"):
        build("holdfast_test_models:net", {"deep": 2}, DIGITS, 10, 0)
