"""Every model takes the same local step in the loop and in the batched executor, and its last stage stands alone."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from holdfast.execute import Cohort, tensors
from holdfast.execute.batched import Batched
from holdfast.execute.loop import Loop
from holdfast.models import build
from holdfast.round import cast, open_memory, open_server
from holdfast.task import Batch, Task
from holdfast.text import parse
from holdfast.vector import repeated

torch.set_num_threads(1)
SMALL, MIDDLE, SMALLEST = (3, 16, 16), (3, 25, 25), (3, 8, 8)
slow = pytest.mark.slow
IMAGES = [
    ("resnet20", {"shortcut": "zero"}, SMALL), ("resnet18", {}, SMALLEST), ("uv_cnn", {}, MIDDLE),
    ("densenet121", {}, SMALLEST), ("mobilenetv2", {}, SMALL), ("vit", {"form": "awa"}, SMALLEST),
    ("vit", {"size": 32}, SMALL), ("twoconv", {}, SMALLEST), ("moon_cnn", {}, SMALL), ("dyn_cnn", {}, SMALL),
    ("lenet", {}, SMALL), ("lenet", {"form": "classic"}, SMALL), ("leaf_cnn", {}, SMALLEST),
    ("wenzhu_cnn", {}, SMALLEST),
    *(pytest.param(*case, marks=slow) for case in [
        ("wrn56", {}, SMALLEST), ("resnet18", {"stem": "3x3"}, SMALLEST), ("resnet18", {"stem": "awa"}, SMALLEST),
        ("uv_resnet18", {}, SMALL), ("densenet121", {"norm": "bn"}, SMALL), ("mobilenetv2", {"norm": "gn"}, SMALL),
    ]),
]  # fmt: skip
TEXTS = [
    ("charlstm", {}, (9,), (20,)), ("charlstm", {"form": "leaf"}, (9,), (20,)),
    ("charlstm", {"form": "dyn"}, (9,), (20,)), ("textcnn", {}, (9,), (30,)), ("fasttext", {}, (9,), (30,)),
]  # fmt: skip
CLICKS = ("din", {}, (12,), (40, 3, 8, 22, 30, 33, *[33] * 6))
ROWS, CLASSES = 8, 5


def clicked(logits: Tensor, y: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(logits[:, 0], y.to(logits.dtype), reduction="none")


def problem(name: str, options: dict, shape: tuple, codes: tuple = ()) -> tuple[Task, Tensor, Tensor]:
    """The model as a task in float64, and rows for it."""
    classes = 2 if name == "din" else CLASSES
    model = build(name, options, shape, classes, 0, codes)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, *shape, generator=draw, dtype=torch.float64)
    if codes:
        sizes = torch.tensor(codes if len(codes) > 1 else codes * shape[0])
        x = (torch.rand(ROWS, *shape, generator=draw) * sizes).long()
    y = torch.randint(0, classes, (ROWS,), generator=draw)
    return Task.of(model, clicked if name == "din" else None, dtype=torch.float64), x, y


def assert_executors_agree(task: Task, x: Tensor, y: Tensor) -> None:
    """One local step of three clients with 3, 2 and 3 rows: one batch is padded, as it is in a run."""
    method = parse("fedavg")
    index = torch.tensor([[[0, 1, 2]], [[3, 4, 0]], [[5, 6, 7]]])
    live = torch.tensor([[[True, True, True]], [[True, True, False]], [[True, True, True]]])
    down = cast(method, open_server(method, task, 3), torch.tensor(0.1, dtype=torch.float64))
    cards = {"n": live.sum((1, 2)).double(), "classes": torch.ones(3, CLASSES).double()}
    memory = repeated(open_memory(method, task, 3), 3)
    cohort = Cohort(torch.arange(3), torch.tensor([5, 6, 7]), index, live, cards, memory)
    loop, batched = (
        executor(tensors(method), down, cohort, lambda i, alive, *_: Batch(x[i], y[i], alive))[0]
        for executor in (Loop(method, task), Batched(method, task, 3))
    )
    assert float(loop.delta.norm()) > 1e-3
    for one, other in ((loop.delta[k], batched.delta[k]) for k in range(3)):
        assert float((one - other).norm()) <= 1e-10 * float(one.norm())
    for name, one in loop.buffers.items():
        assert torch.allclose(one, batched.buffers[name], rtol=1e-10, atol=1e-12), name


@pytest.mark.parametrize(("name", "options", "shape"), IMAGES)
def test_loop_and_batched_agree_on_images(name, options, shape):
    assert_executors_agree(*problem(name, options, shape))


@pytest.mark.parametrize(("name", "options", "shape", "codes"), [*TEXTS, CLICKS])
def test_loop_and_batched_agree_on_codes(name, options, shape, codes):
    assert_executors_agree(*problem(name, options, shape, codes))


@pytest.mark.parametrize(("name", "options", "shape"), [case for case in IMAGES if "vit" not in str(case)])
def test_the_last_stage_stands_alone(name, options, shape):
    # FedAlign runs it again on what went in (Mendieta et al. 2022): without changes it must give what came out.
    task, x, y = problem(name, options, shape)
    batch = Batch(x[:3], y[:3], torch.ones(3, dtype=torch.bool))
    out = task.loss(task.start, task.buffers, batch, lambda: torch.tensor(1))[1]
    assert out.stage is not None
    before, after = out.stage
    assert before.dim() == after.dim() == 4
    assert torch.equal(task.stage(task.start, task.buffers, batch, before), after)


@pytest.mark.parametrize(
    ("name", "options", "shape", "codes"),
    [
        ("moon_cnn", {}, SMALL, ()), ("uv_cnn", {}, MIDDLE, ()), ("vit", {"form": "awa"}, SMALLEST, ()),
        ("resnet20", {"shortcut": "zero"}, SMALLEST, ()), ("charlstm", {}, (4,), (20,)), CLICKS,
    ],
)  # fmt: skip
def test_the_training_step_is_one_graph(name, options, shape, codes):
    # A break raises under fullgraph=True; that is what `--compile` and a captured CUDA graph need. Values: untraced.
    task, x, y = problem(name, options, shape, codes)

    def gradient(w, buffers, rows, labels):
        batch = Batch(rows, labels, torch.ones(2, dtype=torch.bool))
        return torch.func.grad(lambda v: task.loss(v, buffers, batch, lambda: torch.tensor(1))[0])(w)

    args = torch.stack([task.start, 0.9 * task.start]), repeated(task.buffers, 2), x[:4].view(2, 2, *shape)
    args = *args, y[:4].view(2, 2)
    torch.compiler.reset()
    traced = torch.compile(torch.vmap(gradient), backend="eager", fullgraph=True, dynamic=False)(*args)
    assert torch.allclose(torch.vmap(gradient)(*args), traced, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("name", "options", "shape", "codes"), [("twoconv", {}, SMALLEST, ()), TEXTS[0], TEXTS[3]])
def test_dropout_works_in_training_and_not_after(name, options, shape, codes):
    task, x, y = problem(name, options, shape, codes)
    batch = Batch(x, y, torch.ones(ROWS, dtype=torch.bool))
    first, again, other = (task.loss(task.start, {}, batch, lambda k=k: torch.tensor(k))[0] for k in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    features = task.loss(task.start, {}, batch, lambda: torch.tensor(1))[1].features
    after = task.forward(task.start, {}, batch).features
    assert features is not None and after is not None
    assert int((features == 0).sum()) > int((after == 0).sum())
    assert torch.equal(task.forward(task.start, {}, batch).logits, task.forward(task.start, {}, batch).logits)
