"""What the input pipeline costs: index, augment and normalise a batch, against a ResNet-20 step on that batch.

    python bench/pipeline.py [--device cpu|cuda] [--steps 1] [--write]

10 clients x 50 CIFAR-sized images, fp32, ResNet-20 with GroupNorm, forward and backward. Pipeline and step are as the
executor of that device runs them: on a CPU client by client, on a GPU all clients at once (eager, and both compiled).
With --steps the batches of so many local steps are made in one call, and its time is divided among them. Interleaved
pairs, median of their ratios; at most 0.05 is asked for. It refuses to run on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from holdfast.data.augment import augmentation, row_keys
from holdfast.data.plan import keys
from holdfast.data.sets import Dataset
from holdfast.gradient import autograd, functional
from holdfast.models.zoo import build
from holdfast.task import Batch, Task

RESULTS = Path(__file__).with_name("results")
TEXTS = ("none", "fl_simulator", "feddecorr", "feddecorr_auto")
LANES, ROWS, SHAPE, ASKED = 10, 50, (3, 32, 32), 0.05
PAIRS, STEPS = 10, 10
Work = Callable[[], object]


def data_of(device: str) -> Dataset:
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 256, (5000, *SHAPE), dtype=np.uint8), draw.integers(0, 10, 5000)
    return Dataset.of(x, y, x[:10], y[:10], classes=10).to(device)


def pipeline(data: Dataset, text: str, compiled: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    augment = augmentation(text).on(data.x.device)

    def batch(index: Tensor, clients: Tensor, steps: Tensor) -> Tensor:
        x = data.x[index]
        return augment(x, row_keys(clients, steps, ROWS), normal) if augment else normal(x)

    def normal(x: Tensor) -> Tensor:
        return data.prepare(x, torch.float32)

    return torch.compile(batch, dynamic=False, fullgraph=True) if compiled else batch


def gradients(task: Task, device: str, compiled: bool) -> Callable[[Tensor, Batch], Tensor]:
    """Of all lanes at their own weights [K, P]."""

    def one(w: Tensor, batch: Batch, differentiate: Callable) -> Tensor:
        def objective(w: Tensor) -> tuple[Tensor, dict]:
            loss, _, buffers = task.loss(w, task.buffers, batch, lambda: w)
            return loss, buffers

        return differentiate(objective, w)[0]

    if device == "cpu":
        return lambda w, batch: torch.stack([one(w[k], Batch(*(t[k] for t in batch)), autograd) for k in range(LANES)])
    mapped = vmap(lambda w, batch: one(w, batch, functional))
    return torch.compile(mapped, dynamic=False, fullgraph=True) if compiled else mapped


def seconds(work: Work, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def rows(device: str, compiled: bool, steps: int) -> list[dict]:
    data = data_of(device)
    task = Task.of(build("resnet20", {}, SHAPE, 10, 0)).on(device)
    w = task.start.expand(LANES, -1).contiguous()
    index = torch.from_numpy(np.random.default_rng(1).integers(0, len(data.x), (LANES, steps, ROWS))).to(device)
    now = index[:, 0]
    batch = Batch(data.prepare(data.x[now], torch.float32), data.y[now], torch.ones_like(now, dtype=torch.bool))
    step = gradients(task, device, compiled)
    clients = keys(0, 0, torch.arange(LANES, device=device))[:, None]
    place = torch.arange(steps, device=device)[:, None]
    many = range(LANES) if device == "cpu" else [slice(None)]
    found = []
    for text in TEXTS:
        feed = pipeline(data, text, compiled)
        pairs = []
        for _ in range(PAIRS + 2):
            took = seconds(lambda feed=feed: [feed(index[k], clients[k], place) for k in many], device) / steps
            pairs.append((took, seconds(lambda: step(w, batch), device)))
        ratio = statistics.median(ours / model for ours, model in pairs[2:])  # the first two compile and warm up
        found.append({
            "augment": text, "compiled": compiled, "steps": steps,
            "ratio": round(ratio, 4), "asked": ASKED, "met": ratio <= ASKED,
            "pipeline ms": round(1e3 * statistics.median(p for p, _ in pairs[2:]), 3),
            "step ms": round(1e3 * statistics.median(s for _, s in pairs[2:]), 3),
        })  # fmt: skip
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--steps", type=int, default=1, choices=range(1, STEPS + 1), metavar=f"1..{STEPS}")
    parser.add_argument("--write", action="store_true", help=f"replace {RESULTS / 'pipeline-DEVICE.json'}")
    parser.add_argument("--busy", action="store_true", help="run on a busy machine too, and say so; never with --write")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"{os.cpu_count()} cores"
    about = {
        "command": f"python bench/pipeline.py --device {options.device} --steps {options.steps} --write",
        "device": name, "load": load,
        "threads": torch.get_num_threads(), "torch": torch.__version__, "precision": "fp32",
        "work": f"{LANES} clients x {ROWS} images of {SHAPE}, ResNet-20 (gn) forward and backward",
    }  # fmt: skip
    print(about)
    if load > 0.5 and (options.write or not options.busy):
        sys.exit("the machine is busy: these ratios would mean nothing; wait until the load is below 0.5")
    found = [row for compiled in ([False, True] if options.device == "cuda" else [False])
             for row in rows(options.device, compiled, options.steps)]  # fmt: skip
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        lines = ",\n".join(json.dumps(r) for r in found)
        text = f'{{"about": {json.dumps(about)},\n"rows": [\n{lines}\n]}}\n'
        (RESULTS / f"pipeline-{options.device}.json").write_text(text)


if __name__ == "__main__":
    main()
