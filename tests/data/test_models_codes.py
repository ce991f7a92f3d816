"""Models of characters, words and clicks: their formulas by other means, and what they refuse."""

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.errors import Refused
from holdfast.models import build
from holdfast.models.lstm import LSTM
from holdfast.models.zoo import check

torch.set_num_threads(1)
CLICKS = (40, 3, 8, 22, 30, 33, *[33] * 4)


def both(seed=0, inputs=5, hidden=7, layers=2):
    """Ours and torch's, each drawn from the same seed."""
    made = []
    for kind in (LSTM, nn.LSTM):
        torch.manual_seed(seed)
        made.append(kind(inputs, hidden, layers, **({"batch_first": True} if kind is nn.LSTM else {})))
    return made


def test_the_lstm_is_torchs():
    ours, theirs = both()
    assert dict(ours.named_parameters()).keys() == dict(theirs.named_parameters()).keys()
    for name, tensor in theirs.named_parameters():
        assert torch.equal(tensor, ours.get_parameter(name)), name  # the same draws in the same order
    ours, theirs = ours.double(), theirs.double()
    x = torch.randn(3, 6, 5, dtype=torch.float64)
    outs = []
    for net in (ours, theirs):
        given = x.clone().requires_grad_()
        out = net(given) if net is ours else net(given)[0]
        outs.append((out, *torch.autograd.grad(out.sin().sum(), [given, *net.parameters()])))
    for one, other in zip(*outs, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-13)


def test_leafs_lstm_adds_one_to_the_forget_gate():
    # TensorFlow's BasicLSTMCell: c = sigmoid(f + forget_bias) c + ..., forget_bias = 1, gates i, j, f, o.
    ours, theirs = LSTM(5, 7, 1, biases=1, forget=1.0).double(), nn.LSTM(5, 7, batch_first=True).double()
    state = {**ours.state_dict(), "bias_hh_l0": torch.cat([torch.zeros(7), torch.ones(7), torch.zeros(14)])}
    theirs.load_state_dict(state)  # torch's gates: i, f, g, o
    x = torch.randn(3, 6, 5, dtype=torch.float64)
    assert torch.allclose(ours(x), theirs(x)[0], rtol=1e-12, atol=1e-13)
    assert sum(p.numel() for p in ours.parameters()) == 28 * (5 + 7 + 1)


def test_charlstm_reads_the_last_step():
    model = build("charlstm", {"form": "dyn"}, (6,), 9, 0, (12,)).double().eval()
    theirs = nn.LSTM(8, 100, 2, batch_first=True).double()
    theirs.load_state_dict(model.get_submodule("lstm").state_dict())
    x = torch.randint(0, 12, (4, 6))
    last = theirs(model.get_submodule("embedding")(x))[0][:, -1]
    assert torch.allclose(model(x)[1], last, rtol=1e-12, atol=1e-13)


def relu(x):
    return np.maximum(x, 0)


def test_din_by_its_formulas():
    # A3, in NumPy, one row at a time.
    model = build("din", {}, (10,), 2, 0, CLICKS).double()
    p = {name: t.detach().numpy() for name, t in model.named_parameters()}
    rng = np.random.default_rng(0)
    x = np.array([[rng.integers(size) for size in CLICKS] for _ in range(5)])
    x[:, 6] = 0  # left-padded; nobody masks it
    wanted = []
    for row in x:
        who = [
            p[f"tables.{n}.weight"][c]
            for n, c in zip(("user", "gender", "age", "occupation", "zip"), row, strict=False)
        ]
        a, history = p["tables.item.weight"][row[5]], p["tables.item.weight"][row[6:]]
        unit = np.concatenate([np.stack([a] * 4), history, a - history, a * history], 1)
        score = relu(unit @ p["attention.0.weight"].T + p["attention.0.bias"]) @ p["attention.2.weight"].T
        score = np.exp(score + p["attention.2.bias"])
        pooled = (score / score.sum() * history).sum(0)
        h = np.concatenate([*who, a, pooled])
        for layer in ("body.0", "body.2"):
            h = relu(p[f"{layer}.weight"] @ h + p[f"{layer}.bias"])
        wanted.append(p["head.weight"] @ h + p["head.bias"])
    logits, features = model(torch.tensor(x))
    assert logits.shape == (5, 1) and features.shape == (5, 16)
    assert np.allclose(logits.detach().numpy(), np.stack(wanted), rtol=1e-12)


def test_fasttext_by_its_formula():
    model = build("fasttext", {"width": 4}, (6,), 3, 0, (20,)).double()
    p = {name: t.detach() for name, t in model.named_parameters()}
    x = torch.tensor([[5, 6, 7, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
    table = p["words.embedding.weight"]
    mean = torch.stack([(table[5] + table[6] + table[7]) / 3, torch.zeros(4)])
    wanted = mean @ p["hidden.weight"].T + p["hidden.bias"]
    assert torch.allclose(model(x)[1], wanted, rtol=1e-12)


def test_textcnn_by_its_formula():
    model = build("textcnn", {"width": 4, "channels": 3}, (7,), 3, 0, (20,)).double().eval()
    p = {name: t.detach() for name, t in model.named_parameters()}
    x = torch.tensor([3, 9, 4, 11, 1, 0, 0])
    vectors = p["words.embedding.weight"][x] * (x != 0)[:, None]
    wanted = []
    for i, kernel in enumerate((3, 4, 5)):
        weight, bias = p[f"convs.{i}.weight"], p[f"convs.{i}.bias"]
        at = [(weight * vectors[t : t + kernel].T).sum((1, 2)) + bias for t in range(7 - kernel + 1)]
        wanted.append(torch.stack(at).relu().amax(0))
    assert torch.allclose(model(x[None])[1][0], torch.cat(wanted), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["textcnn", "fasttext"])
def test_padding_is_no_word(name):
    model, x = build(name, {}, (8,), 3, 0, (20,)).eval(), torch.tensor([[4, 5, 6, 7, 8, 0, 0, 0]])
    before = model(x)[0]
    with torch.no_grad():
        model.get_parameter("words.embedding.weight")[0] += 100
    assert torch.equal(before, model(x)[0])
    before.sum().backward()
    grad = model.get_parameter("words.embedding.weight").grad
    assert grad is not None and grad.any() and not grad[0].any()


@pytest.mark.parametrize(
    ("name", "options", "shape", "classes", "codes", "part"),
    [
        ("charlstm", {}, (80,), 80, (), "charlstm needs codes"),
        ("resnet18", {}, (80,), 80, (80,), "resnet18 needs numbers, the samples are codes"),
        ("logreg", {}, (80,), 80, (80,), "take one of charlstm, textcnn, fasttext, din"),
        ("timm:resnet18", {}, (80,), 80, (80,), "timm:resnet18 needs numbers"),
        ("charlstm", {"form": "gru"}, (80,), 80, (80,), "charlstm has no form 'gru': known: dyn, leaf, wenzhu"),
        ("charlstm", {}, (56,), 2, CLICKS, "reads one vocabulary, the samples have 10 fields"),
        ("din", {}, (80,), 2, (80,), "din needs a size for each of its 7 fields or more"),
        ("din", {}, (10,), 2, (*CLICKS[:-1], 34), "shares the items' table of 33 codes, and the history has up to 34"),
        ("din", {}, (10,), 3, CLICKS, "the data has 3 classes"),
        ("textcnn", {}, (4,), 3, (20,), "texts of 5 words or more, these have 4"),
        ("textcnn", {"dropout": 1}, (9,), 3, (20,), "dropout=1 is not a number from 0 to below 1"),
        ("textcnn", {"width": 0}, (9,), 3, (20,), "width=0 is not a whole number above 0"),
        ("fasttext", {}, (3, 8, 8), 3, (20,), "needs rows of codes, the samples have shape (3, 8, 8)"),
        ("fasttext", {}, (8,), 3, (0,), "give whole numbers above 0"),
    ],
)
def test_samples_that_do_not_fit_are_refused(name, options, shape, classes, codes, part):
    with pytest.raises(Refused) as caught:
        build(name, options, shape, classes, 0, codes)
    assert part in str(caught.value)


@pytest.mark.parametrize("name", ["charlstm", "textcnn", "fasttext", "din", "vit", "leaf_cnn", "uv_cnn"])
def test_options_are_checked_before_there_is_data(name):
    check(name, {})
    with pytest.raises(Refused, match=f"{name} has no option 'widht'"):
        check(name, {"widht": 3})


def test_a_model_of_the_users_own_is_given_codes(tmp_path, monkeypatch):
    lines = [
        "import torch.nn as nn",
        "def net(codes, classes):",
        "    return nn.Sequential(nn.Embedding(codes[0], 4), nn.Flatten(), nn.Linear(12, classes))",
    ]
    (tmp_path / "holdfast_test_codes.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    model = build("holdfast_test_codes:net", {}, (3,), 5, 0, (17,))
    assert model(torch.tensor([[1, 2, 16]])).shape == (1, 5)
    check("holdfast_test_codes:net", {})
