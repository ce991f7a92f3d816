"""Models of timm and torchvision: made where these are installed, refused in plain words where not.

CI has neither: there is no torchvision for torch's CPU build on PyPI, and timm needs it. Where they are installed the
second half runs.
"""

import importlib
import sys

import pytest
import torch
from torch import nn

from holdfast.errors import Refused
from holdfast.layers import KeyedDropout, LiveBatchNorm, prepared
from holdfast.models import build
from holdfast.models.zoo import check
from holdfast.task import Batch, Task

torch.set_num_threads(1)
IMAGE = (3, 32, 32)


def works(library: str) -> bool:
    try:
        importlib.import_module(library)
    except Exception:  # torchvision made for another torch raises RuntimeError
        return False
    return True


needs_timm = pytest.mark.skipif(not works("timm"), reason="timm (or its torchvision) is not installed")
needs_torchvision = pytest.mark.skipif(not works("torchvision"), reason="torchvision is not installed")


@pytest.mark.parametrize(("name", "extra"), [("timm:resnet18", "timm"), ("torchvision:resnet18", "torchvision")])
def test_a_library_that_is_not_there_is_refused_by_its_extra(name, extra, monkeypatch):
    for module in (extra, f"{extra}.models"):
        monkeypatch.setitem(sys.modules, module, None)  # what Python itself does to bar an import
    for call in (lambda: build(name, {}, IMAGE, 10, 0), lambda: check(name, {})):
        with pytest.raises(Refused) as caught:
            call()
        assert f'{extra} is not installed: pip install "holdfast[{extra}]"' in str(caught.value)


def test_a_library_that_does_not_load_is_refused_with_the_reason(tmp_path, monkeypatch):
    # What torchvision for CUDA says beside torch's CPU build (0.28.0 beside 2.13.0+cpu).
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    with pytest.raises(Refused) as caught:
        build("timm:resnet18", {}, IMAGE, 10, 0)
    assert "operator torchvision::nms does not exist" in str(caught.value) and "same index" in str(caught.value)


@pytest.mark.parametrize("option", ["pretrained", "num_classes", "in_chans", "checkpoint_path", "weights"])
def test_what_the_data_or_the_run_decides_is_no_option(option):
    with pytest.raises(Refused, match=f"timm:resnet18 has no option '{option}' here"):
        build("timm:resnet18", {option: True}, IMAGE, 10, 0)


def test_samples_that_are_no_images():
    with pytest.raises(Refused, match="needs images"):
        build("torchvision:resnet18", {}, (64,), 10, 0)


class Loud(nn.BatchNorm2d):
    """A batch normalisation of one's own."""

    def forward(self, x):
        return 2 * super().forward(x)


def test_batch_normalisation_that_does_more_is_not_swapped_for_torchs():
    with pytest.raises(Refused, match=r"does more than torch's \(.*Loud\)"):
        prepared(nn.Sequential(Loud(3)))


@needs_timm
def test_timm_models_take_the_datas_channels_and_classes():
    # timm's ResNet-18 is torchvision's: A2's 11,181,642 less two of three stem channels.
    model = build("timm:resnet18", {}, (1, 32, 32), 10, 0)
    assert sum(p.numel() for p in model.parameters()) == 11_181_642 - 2 * 64 * 49
    again = build("timm:resnet18", {}, (1, 32, 32), 10, 0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    with pytest.raises(Refused, match="did you mean resnet18"):
        build("timm:resnet19", {}, IMAGE, 10, 0)
    with pytest.raises(Refused, match="with these options failed"):
        build("timm:resnet18", {"deep": 3}, IMAGE, 10, 0)


@needs_timm
def test_timms_normalisation_keeps_its_activation():
    # timm's BatchNormAct2d has the activation inside; live rows alone must not lose it.
    model = build("timm:mobilenetv2_035", {}, IMAGE, 10, 0).double()
    live = prepared(model).train()
    assert any(isinstance(m, LiveBatchNorm) and m.then for m in live.modules())
    x = torch.randn(4, *IMAGE, dtype=torch.float64)
    assert torch.allclose(model.train()(x), live(x), rtol=1e-6, atol=1e-8)
    assert torch.allclose(model.eval()(x), live.eval()(x), rtol=1e-6, atol=1e-8)


@needs_timm
def test_our_vit_is_timms():
    ours = build("vit", {}, IMAGE, 10, 0).double()
    theirs = build("timm:vit_tiny_patch16_224", {}, IMAGE, 10, 0).double()
    pairs = list(zip(sorted_sizes(ours), sorted_sizes(theirs), strict=True))
    assert all(a == b for a, b in pairs)
    names = {"token": "cls_token", "positions": "pos_embed", "patches": "patch_embed.proj", "layers": "blocks",
             "attention": "attn", "out": "proj", "inner": "mlp.fc1", "outer": "mlp.fc2"}  # fmt: skip
    state = {
        ".".join(names.get(part, part) for part in key.split(".")): value for key, value in ours.state_dict().items()
    }
    theirs.load_state_dict(state)
    x = torch.randn(2, 3, 224, 224, dtype=torch.float64)
    assert torch.allclose(ours(x)[0], theirs(x), rtol=1e-9, atol=1e-11)


def sorted_sizes(model):
    return sorted(p.numel() for p in model.parameters())


@needs_timm
def test_timms_attention_maps_over_clients():
    task = Task.of(build("timm:vit_tiny_patch16_224", {"depth": 1, "img_size": 32, "drop_path_rate": 0.5}, IMAGE, 3, 0))
    x, y = torch.randn(2, 2, *IMAGE), torch.tensor([[0, 1], [2, 0]])

    def loss(w, rows, labels):
        batch = Batch(rows, labels, torch.ones(2, dtype=torch.bool))
        return task.loss(w, task.buffers, batch, lambda: torch.tensor(3))[0]

    stack = torch.stack([task.start, 0.9 * task.start])
    mapped = torch.vmap(loss)(stack, x, y)
    assert torch.allclose(mapped, torch.stack([loss(stack[k], x[k], y[k]) for k in range(2)]), rtol=1e-5)


@needs_torchvision
def test_torchvision_models_take_the_datas_channels_and_classes():
    for channels in (1, 3):
        model = build("torchvision:resnet18", {}, (channels, 32, 32), 10, 0)
        assert sum(p.numel() for p in model.parameters()) == 11_181_642 - (3 - channels) * 64 * 49
        assert model(torch.randn(2, channels, 32, 32)).shape == (2, 10)
    assert isinstance(build("torchvision:googlenet", {}, IMAGE, 10, 0).train()(torch.randn(2, *IMAGE)), torch.Tensor)


@needs_torchvision
def test_torchvisions_stochastic_depth_is_keyed():
    live = prepared(build("torchvision:convnext_tiny", {"stochastic_depth_prob": 0.5}, IMAGE, 10, 0)).train()
    assert sum(isinstance(m, KeyedDropout) and m.dims == 1 for m in live.modules()) == 18  # ConvNeXt-T: 3 + 3 + 9 + 3


@needs_torchvision
def test_our_resnet18_is_torchvisions():
    ours = build("resnet18", {"norm": "bn"}, IMAGE, 10, 0).double().train()
    theirs = build("torchvision:resnet18", {}, IMAGE, 10, 0).double().train()
    names = {"norm1": "bn1", "norm2": "bn2", "shortcut": "downsample", "head": "fc"}
    state = {
        ".".join(names.get(part, part) for part in key.split(".")): value for key, value in ours.state_dict().items()
    }
    theirs.load_state_dict(state)
    x = torch.randn(4, *IMAGE, dtype=torch.float64)
    assert torch.allclose(ours(x)[0], theirs(x), rtol=1e-9, atol=1e-11)
