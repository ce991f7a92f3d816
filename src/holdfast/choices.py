"""What the options of a run can name, read off the registries: for `holdfast list` and the docs.

Splits, models, augmentations and constants; data sets are in `holdfast.data.catalog`, parts in `holdfast.catalogue`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from holdfast.data import augment, dirichlet, files, flower_splits, normal, sets
from holdfast.data.splits import RULES
from holdfast.data.synthetic import synthetic
from holdfast.models import MODELS

Told = dict[str, Any]


class Published(NamedTuple):
    """A split of the papers: its names in the specs, ours, and who uses it."""

    id: str  # P1 to P8, models-data-metrics.md B3
    letter: str  # A to E, methods-local.md 3.3
    text: str
    used_by: str


PUBLISHED = (
    Published("P1", "D", "dirichlet(alpha=0.1, rule='minimum')",
              "MOON, NIID-Bench, FedDecorr, FedUV, FedDisco, FedSOL; hence FedGH, UniVarFL"),
    Published("P2", "", "dirichlet(alpha=0.1, rule='minimum', min_size='classes')", "FedLab's hetero-dir"),
    Published("P3", "", "dirichlet(alpha=0.1, rule='plain', empty='allow')", "simple-FL (FedEve)"),
    Published("P4", "C", "dirichlet(alpha=0.1, rule='classwise')",
              "FedLAW, FedAWA, FedLWS; the description in FedFFT's appendix"),
    Published("P5", "B", "dirichlet(alpha=0.1, rule='balanced')", "FedDyn, FedDC, FedLab's client-inner"),
    Published("P5r", "A", "dirichlet(alpha=0.1, rule='recycled')",
              "FL-Simulator (FedSMOO), FedLESAM; our reading of FedFFT and SpecGradFilter"),
    Published("P6", "", "class_split(clients=20)", "FedGH, figure 5"),
    Published("P7", "", "classes(k=2)", "NIID-Bench's #labels"),
    Published("P8", "", "shards(k=2)", "McMahan et al. 2017"),
    Published("", "E", "listed(path='federated_train_alpha_0.05.json')", "the fixed lists of FedGloSS and FedSAM"),
    Published("", "", "classes(k=2, recycled=True)", "FL-Simulator's pathological rule"),
    Published("", "", "quantity(alpha=0.5)", "NIID-Bench's iid-diff-quantity"),
)  # fmt: skip

# Samples on which the size of a model is told, where they are not CIFAR-10's: shape, classes, codes.
CIFAR10 = ((3, 32, 32), 10, ())
FEMNIST = ((1, 28, 28), 62, ())
USUAL: dict[str, tuple[tuple[int, ...], int, tuple[int, ...]]] = {
    "lenet": FEMNIST, "leaf_cnn": FEMNIST, "wenzhu_cnn": FEMNIST,
    "charlstm": ((80,), 80, (80,)),  # Shakespeare
    "textcnn": ((200,), 10, (32_000,)), "fasttext": ((200,), 10, (32_000,)),  # Yahoo! Answers
    "din": ((56,), 2, (6041, 3, 8, 22, 3440, *[3953] * 51)),  # MovieLens-1M
}  # fmt: skip


def words(call: Callable[..., Any]) -> tuple[str, str]:
    """The first paragraph of a docstring and the rest, without line breaks."""
    text = inspect.cleandoc(call.__doc__ or "")
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), " ".join(rest.split())


def options(call: Callable[..., Any], given: int = 0) -> dict[str, str]:
    """Every option with its default, '' where it has to be given. The first `given` parameters are no options."""
    found = list(inspect.signature(call).parameters.values())[given:]
    return {p.name: "" if p.default is p.empty else repr(p.default) for p in found}


def shown(name: str, known: dict[str, str]) -> str:
    """`name(a=..., b=1)`: dots where a value has to be given."""
    inside = ", ".join(f"{key}={value}" if value else f"{key}=..." for key, value in known.items())
    return f"{name}({inside})" if inside else name


def told(kind: str, name: str, call: Callable[..., Any], given: int = 0) -> Told:
    what, notes = words(call)
    known = options(call, given)
    return {"kind": kind, "name": name, "text": shown(name, known), "what": what, "notes": notes, "options": known}


def splits() -> list[Told]:
    found = [told("split", name, call, given=2) for name, call in RULES.items()]
    for row in found:
        own = re.compile(rf"{row['name']}\b")
        row["published"] = [p._asdict() for p in PUBLISHED if own.match(p.text)]
    next(row for row in found if row["name"] == "dirichlet")["rules"] = dirichlet_rules()
    flower = told("split", f"{flower_splits.PREFIX}NAME", flower_splits.flower) | {"options": {}, "published": []}
    flower["text"] = f"{flower_splits.PREFIX}DirichletPartitioner(num_partitions=10, partition_by='label', alpha=0.1)"
    flower["what"] = "A partitioner of Flower Datasets as it is, by its name (extra: flower)."
    return [*found, flower]


def dirichlet_rules() -> dict[str, str]:
    return {name: " ".join(words(call)).strip() for name, call in dirichlet.RULES.items()}


def models() -> list[Told]:
    """With the number of parameters on the samples that they are usually trained on."""
    found = []
    for name, call in MODELS.items():
        shape, classes, codes = USUAL.get(name, CIFAR10)
        filled = {"shape": shape, "classes": classes} | ({"codes": codes} if codes else {})
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            size = sum(p.numel() for p in call(**filled).parameters())
        row = told("model", name, call, given=len(filled))
        found.append(row | {"parameters": size, "shape": list(shape), "classes": classes})
    return found


def steps() -> list[Told]:
    """The steps that a text of augmentation is made of."""
    found = []
    for name, kind in augment.STEPS.items():
        what, notes = words(kind)
        fields = [f for f in dataclasses.fields(kind) if f.compare]
        known = {f.name: "" if f.default is dataclasses.MISSING else repr(f.default) for f in fields}
        found.append({"kind": "augment", "name": name, "text": shown(name, known), "what": what, "notes": notes,
                      "options": known})  # fmt: skip
    place = "Where the pixels are normalised: after the last step, if the text does not say it."
    row = {"kind": "augment", "name": augment.NORMALISE, "text": augment.NORMALISE, "what": place, "notes": ""}
    return [*found, row | {"options": {}}]


def presets() -> list[Told]:
    """The augmentations of code bases."""
    return [
        {"kind": "augment", "name": name, "text": name, "what": augment.WHOSE[name], "stands_for": text, "options": {}}
        for name, text in augment.PRESETS.items()
    ]


def constants() -> list[Told]:
    """Mean and standard deviation of pixels from 0 to 1."""
    return [
        {"kind": "normalize", "name": name, "text": name, "what": normal.WHOSE[name], "mean": mean, "std": std,
         "options": {}}
        for name, (mean, std) in normal.CONSTANTS.items()
    ]  # fmt: skip


def own_sets() -> list[Told]:
    """Data sets beside the catalogue: shipped, made, or a user's own files."""
    calls = {**sets.SETS, "synthetic": synthetic, **files.SETS}
    return [told("data", name, call) for name, call in calls.items()]


KINDS: dict[str, Callable[[], list[Told]]] = {
    "split": splits,
    "model": models,
    "augment": lambda: [*steps(), *presets()],
    "normalize": constants,
}
