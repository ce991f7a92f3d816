"""The papers' models: exact sizes, what comes out of every image size of the specs, feature maps, initialisations.

Sizes and layers: specs/models-data-metrics.md A2 and A3. Forms and shapes are computed on torch's meta device.
"""

import pytest
import torch
from torch import nn

from holdfast.models import MODELS, build

torch.set_num_threads(1)
CIFAR, STL, EMNIST = (3, 32, 32), (3, 96, 96), (1, 28, 28)
MOVIELENS = (6041, 3, 8, 22, 3440, 3953) + (3953,) * 50


def shaped(name, shape, classes, **options):
    with torch.device("meta"):
        return MODELS[name](shape, classes, **options)


def size(model):
    return sum(p.numel() for p in model.parameters())


SIZES = [
    ("resnet20", CIFAR, {}, {10: 272_474, 100: 278_324, 200: 284_824, 8: 272_344}),
    ("resnet20", CIFAR, {"shortcut": "zero"}, {10: 269_722, 100: 275_572}),
    ("wrn56", CIFAR, {}, {10: 3_412_394, 100: 3_424_004}),
    ("wrn56", CIFAR, {"width": 4}, {10: 13_628_234}),
    ("resnet18", CIFAR, {}, {10: 11_181_642, 100: 11_227_812, 200: 11_279_112, 62: 11_208_318}),
    ("resnet18", CIFAR, {"stem": "3x3"}, {10: 11_173_962, 100: 11_220_132, 200: 11_271_432}),
    ("resnet18", CIFAR, {"stem": "awa"}, {10: 11_173_962}),  # the same layers; the pooling has no parameters
    ("uv_resnet18", CIFAR, {}, {10: 11_705_546, 100: 11_751_716, 7: 11_704_007}),
    ("uv_cnn", STL, {}, {10: 161_594, 7: 160_823}),
    ("densenet121", CIFAR, {}, {10: 6_956_298, 100: 7_048_548, 200: 7_151_048}),
    ("mobilenetv2", CIFAR, {}, {10: 2_296_922, 100: 2_412_212, 200: 2_540_312}),
    ("vit", CIFAR, {}, {10: 5_526_346, 100: 5_543_716, 1000: 5_717_416, 200: 5_563_016}),
    ("vit", CIFAR, {"patch": 4, "size": 32}, {10: 5_362_762}),
    ("vit", CIFAR, {"form": "awa"}, {10: 9_523_722, 100: 9_569_892}),
    ("moon_cnn", CIFAR, {}, {10: 92_626}),
    ("moon_cnn", CIFAR, {"projector": False}, {10: 62_006}),
    ("twoconv", CIFAR, {}, {10: 1_626_442}),
    ("twoconv", EMNIST, {}, {62: 1_206_590}),
    ("twoconv", EMNIST, {"form": "eve"}, {62: 1_206_590}),
    ("dyn_cnn", CIFAR, {}, {10: 797_962, 100: 815_332}),
    ("lenet", EMNIST, {}, {62: 31_972}),
    ("lenet", EMNIST, {"form": "classic"}, {62: 66_126}),
    ("leaf_cnn", EMNIST, {}, {62: 6_603_710}),
    ("wenzhu_cnn", EMNIST, {}, {62: 214_590}),
    ("charlstm", (80,), {"codes": (80,)}, {80: 819_920}),
    ("charlstm", (80,), {"codes": (80,), "form": "leaf"}, {80: 817_872}),
    ("charlstm", (80,), {"codes": (80,), "form": "dyn"}, {80: 133_520}),
    ("din", (56,), {"codes": MOVIELENS}, {2: 205_398}),
    # By hand: 500 words of 32 numbers, kernels 3 + 4 + 5 to 100 channels each, 300 features, 10 classes; fastText.
    ("textcnn", (200,), {"codes": (500,)}, {10: 500 * 32 + 12 * 32 * 100 + 300 + 3010}),
    ("fasttext", (200,), {"codes": (500,)}, {10: 500 * 32 + 32 * 33 + 330}),
]


@pytest.mark.parametrize(("name", "shape", "options", "wanted"), SIZES)
def test_models_have_the_published_size(name, shape, options, wanted):
    assert {classes: size(shaped(name, shape, classes, **options)) for classes in wanted} == wanted


@pytest.mark.parametrize(
    "name", ["resnet20", "wrn56", "resnet18", "uv_resnet18", "uv_cnn", "densenet121", "mobilenetv2"]
)
def test_both_norms_have_the_same_number_of_parameters(name):
    # A2: "GroupNorm and BatchNorm have the same number of trainable parameters".
    gn, bn = (shaped(name, STL, 10, norm=norm) for norm in ("gn", "bn"))
    assert size(gn) == size(bn)
    kinds = {type(m) for m in bn.modules()}
    assert nn.GroupNorm not in kinds and nn.BatchNorm2d in kinds
    kinds = {type(m) for m in gn.modules()}
    assert nn.GroupNorm in kinds and not kinds & {nn.BatchNorm1d, nn.BatchNorm2d}
    assert {m.num_groups for m in gn.modules() if isinstance(m, nn.GroupNorm)} == {2}


def test_the_norms_of_the_papers_code_are_the_defaults():
    # A3: FedUV's, UniVarFL's and FedDecorr's networks have BatchNorm; the others GroupNorm here (A3, [I]).
    bn = {n for n in MODELS if any(isinstance(m, nn.BatchNorm2d) for m in modules(n))}
    gn = {n for n in MODELS if any(isinstance(m, nn.GroupNorm) for m in modules(n))}
    assert bn == {"uv_resnet18", "uv_cnn", "mobilenetv2"}
    assert gn == {"cnn", "resnet20", "wrn56", "resnet18", "densenet121"}


def modules(name):
    if name in ("charlstm", "textcnn", "fasttext"):
        return shaped(name, (20,), 10, codes=(30,)).modules()
    return (shaped(name, (56,), 2, codes=MOVIELENS) if name == "din" else shaped(name, STL, 10)).modules()


# Widths of the input of the last layer, from the layer lists of A3.
FEATURES = [
    ("resnet20", {}, 64), ("resnet20", {"shortcut": "zero"}, 64), ("wrn56", {}, 128), ("resnet18", {}, 512),
    ("resnet18", {"stem": "3x3"}, 512), ("resnet18", {"stem": "awa"}, 512), ("uv_resnet18", {}, 512),
    ("uv_cnn", {}, 256), ("densenet121", {}, 1024), ("mobilenetv2", {}, 1280), ("vit", {}, 192),
    ("vit", {"form": "awa"}, 512), ("twoconv", {}, 128), ("moon_cnn", {}, 256), ("moon_cnn", {"projector": False}, 84),
    ("dyn_cnn", {}, 192), ("lenet", {}, 100), ("lenet", {"form": "classic"}, 84), ("leaf_cnn", {}, 2048),
]  # fmt: skip
SHAPES = [CIFAR, EMNIST, (3, 28, 28), (3, 64, 64), STL, (3, 224, 224)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "options", "features"), FEATURES)
def test_shapes_of_logits_and_features(name, options, features, shape):
    with torch.device("meta"):
        logits, found = MODELS[name](shape, 62, **options)(torch.empty(2, *shape))
    assert (logits.shape, found.shape) == ((2, 62), (2, features))


@pytest.mark.parametrize(("shape", "features"), [(EMNIST, 7 * 7 * 64), (CIFAR, 8 * 8 * 64)])
def test_shapes_of_the_network_without_hidden_layer(shape, features):
    with torch.device("meta"):
        logits, found = MODELS["wenzhu_cnn"](shape, 62)(torch.empty(2, *shape))
    assert (logits.shape, found.shape) == ((2, 62), (2, features))


STAGES = ("layer1", "layer2", "layer3", "layer4")
DENSE = ("stages.0", "stages.2", "stages.4", "stages.6")
MAPS = [
    # A3 and methods-local 3.5; 28 x 28 by hand: (28 + 6 - 7)/2 + 1 = 14, pooled 7, then halves rounded up.
    ("resnet18", {}, 32, STAGES, [8, 4, 2, 1]),
    ("resnet18", {}, 64, STAGES, [16, 8, 4, 2]),
    ("resnet18", {}, 28, STAGES, [7, 4, 2, 1]),
    ("resnet18", {"stem": "3x3"}, 32, STAGES, [32, 16, 8, 4]),
    ("resnet18", {"stem": "awa"}, 64, STAGES, [32, 16, 8, 4]),  # so that its fixed 4 x 4 pooling fits
    ("uv_resnet18", {}, 32, STAGES, [16, 8, 4, 2]),
    ("densenet121", {}, 32, DENSE, [32, 16, 8, 4]),
    ("wrn56", {}, 32, ("blocks.8", "blocks.17", "blocks.26"), [32, 16, 8]),
    # Strides 1, 1, 2, 2, 1, 2, 1 over the stages.
    ("mobilenetv2", {}, 32, ("blocks.0", "blocks.2", "blocks.5", "blocks.9", "blocks.15", "blocks.16"),
     [32, 32, 16, 8, 4, 4]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "side", "layers", "wanted"), MAPS)
def test_sizes_of_feature_maps(name, options, side, layers, wanted):
    sizes = []
    with torch.device("meta"):
        model = MODELS[name]((3, side, side), 10, **options)
        for layer in layers:
            model.get_submodule(layer).register_forward_hook(lambda _, __, out: sizes.append(out.shape[2]))
        model(torch.empty(2, 3, side, side))
    assert sizes == wanted


@pytest.mark.parametrize(
    ("side", "stem", "live"),
    # addenda A17 and 'what holds': on one pixel the centre tap alone, 4 of 9 where two pixels become one; none else.
    [
        (32, "imagenet", [9, 4, 1, 1, 1]),
        (28, "imagenet", [9, 4, 1, 1, 1]),
        (64, "imagenet", [9] * 5),
        (32, "3x3", [9] * 5),
    ],
)
def test_taps_that_nothing_reaches(side, stem, live):
    model = build("resnet18", {"stem": stem}, (3, side, side), 10, 0)
    draw = torch.Generator().manual_seed(0)
    model(torch.randn(2, 3, side, side, generator=draw))[0].square().sum().backward()
    convs = ("layer3.1.conv2", "layer4.0.conv1", "layer4.0.conv2", "layer4.1.conv1", "layer4.1.conv2")
    grads = [model.get_parameter(f"{name}.weight").grad for name in convs]
    assert [int(torch.count_nonzero(g.abs().sum((0, 1)))) for g in grads if g is not None] == live


def test_norms_of_resnet18():
    # A3: "GN replacement must cover bn1, both norms of each block and the norm inside each downsample (20 norms)".
    assert sum(isinstance(m, nn.GroupNorm) for m in shaped("resnet18", CIFAR, 10).modules()) == 20


def test_a_patch_is_read_by_row_column_channel():
    # A1: FedAWA's embedding is a linear layer on '(p1 p2 c)'; a filter of flattened weights sees that order.
    model = build("vit", {"form": "awa", "patch": 2}, (3, 4, 4), 10, 0)
    x = torch.randn(1, 3, 4, 4)
    pixels = torch.stack([x[0, c, 2 + i, j] for i in (0, 1) for j in (0, 1) for c in (0, 1, 2)])  # the third patch
    patches = model.get_submodule("patches")
    assert torch.allclose(patches(x)[0, 2], patches.get_submodule("linear")(pixels), atol=1e-6)


def test_images_are_enlarged_for_patches_of_sixteen():
    # A3 (a): "Default [I]: bilinear resize to 224".
    model, x = build("vit", {}, CIFAR, 10, 0), torch.randn(1, *CIFAR)
    big = nn.functional.interpolate(x, size=(224, 224), mode="bilinear", align_corners=False)
    assert torch.equal(model(x)[0], model(big)[0])


def test_shortcuts_without_parameters():
    # A3: "stride-2 subsampling plus zero-padding of channels", a quarter before and a quarter after.
    x = torch.arange(2 * 16 * 4.0 * 4).view(2, 16, 4, 4)
    out = build("resnet20", {"shortcut": "zero"}, CIFAR, 10, 0).get_submodule("blocks.3.shortcut")(x)
    assert out.shape == (2, 32, 2, 2) and torch.equal(out[:, 8:24], x[:, :, ::2, ::2])
    assert not out[:, :8].any() and not out[:, 24:].any()


def test_new_features_stand_in_front():
    # A3: DenseNet's code concatenates "new features in front of old".
    x = torch.randn(2, 64, 4, 4)
    out = build("densenet121", {}, CIFAR, 10, 0).get_submodule("stages.0.0")(x)
    assert out.shape[1] == 96 and torch.equal(out[:, 32:], x) and out[:, :32].any()
