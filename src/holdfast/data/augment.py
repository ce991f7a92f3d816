"""Augmentation of training images on the device: a text such as "crop(pad=4) + flip" as a pure function.

Steps are done in the order of the text. Where it says `normalise`, the pixels are normalised; else after the last step.
So "normalise + flip + crop(pad=4, p=0.5)" pads with zeros that are the mean, "crop(pad=4)" with black.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from holdfast import noise
from holdfast.data.autoaugment import AutoAugment
from holdfast.data.named import expression, option_problems
from holdfast.data.steps import Crop, Cutout, Flip, Rotate
from holdfast.errors import Refused
from holdfast.text import Call, calls, unknown

Step = Crop | Flip | Rotate | Cutout | AutoAugment
STEPS: dict[str, type[Step]] = {
    "crop": Crop, "flip": Flip, "rotate": Rotate, "cutout": Cutout, "autoaugment": AutoAugment,
}  # fmt: skip
NORMALISE, NONE = "normalise", "none"

# What the code bases do; models-data-metrics.md B2, methods-local.md 3.1 and 3.4. Every code base of normal.CONSTANTS
# has its name here too, but for fl_simulator_mnist, of which nothing is stated.
PRESETS = {
    "fl_simulator": "normalise + flip + crop(pad=4, p=0.5)",
    "fl_simulator_tiny": "normalise + flip + crop(pad=8, p=0.5)",
    "feddecorr": "crop(pad=4) + flip",
    "feddecorr_auto": "crop(pad=4) + flip + autoaugment",
    "feddecorr_tiny": "autoaugment",
    "fedgh": "crop(pad=4) + flip + autoaugment",
    "fedgh_tiny": "autoaugment",
    "moon_cifar10": "crop(pad=4, border='reflect') + flip",
    "moon_cifar100": "crop(pad=4) + flip + rotate(degrees=15)",
    "feduv_stl10": "crop(pad=4) + flip",
    "fedsam": "crop(pad=4) + flip",
    "fedgloss": "crop(pad=4) + flip",
    "fedsol": "crop(pad=4) + flip + normalise + cutout(size=16)",
}
PRESETS |= {
    **dict.fromkeys(("fl_simulator_cifar10", "fl_simulator_cifar100"), PRESETS["fl_simulator"]),
    "feddecorr_cifar10": PRESETS["feddecorr"],  # its scripts have AutoAugment for CIFAR-100 and Tiny-ImageNet only
    "feddecorr_cifar100": PRESETS["feddecorr_auto"],
    **dict.fromkeys(("fedgloss_cifar10", "fedgloss_cifar100"), PRESETS["fedgloss"]),
    "fedsam_cifar10": PRESETS["fedsam"],
    "fedsol_cifar10": PRESETS["fedsol"],
    **dict.fromkeys(("fedlaw", "fedawa", "fedlws", "moon_tiny", "feduv_cifar10"), NONE),
    **dict.fromkeys(("simple_fl_cifar", "simple_fl_femnist", "wenzhu_femnist"), NONE),
}
WHOSE = {  # presets, whose they are and on which data
    "fl_simulator": "FL-Simulator (FedSMOO), FedLESAM, FedDyn and FedDC on CIFAR; padded with zeros that are the mean",
    "fl_simulator_tiny": "FL-Simulator and FedLESAM on Tiny-ImageNet",
    "feddecorr": "FedDecorr on CIFAR without AutoAugment",
    "feddecorr_auto": "FedDecorr on CIFAR with AutoAugment",
    "feddecorr_tiny": "FedDecorr on Tiny-ImageNet: AutoAugment alone",
    "fedgh": "FedGH on CIFAR; its paper has AutoAugment on all data sets",
    "fedgh_tiny": "FedGH on Tiny-ImageNet",
    "moon_cifar10": "MOON on CIFAR-10; the border is mirrored",
    "moon_cifar100": "MOON on CIFAR-100",
    "feduv_stl10": "FedUV on STL-10; it has none on CIFAR",
    "fedsam": "FedSAM on CIFAR",
    "fedgloss": "FedGloSS on CIFAR; its code draws once a batch, here every image has its own draw",
    "fedsol": "FedSOL on CIFAR-10",
    **dict.fromkeys(("fl_simulator_cifar10", "fl_simulator_cifar100"), "FL-Simulator, by the name of its constants"),
    "feddecorr_cifar10": "FedDecorr on CIFAR-10; its scripts have AutoAugment for CIFAR-100 and Tiny-ImageNet only",
    "feddecorr_cifar100": "FedDecorr on CIFAR-100",
    **dict.fromkeys(("fedgloss_cifar10", "fedgloss_cifar100"), "FedGloSS, by the name of its constants"),
    "fedsam_cifar10": "FedSAM on CIFAR-10",
    "fedsol_cifar10": "FedSOL on CIFAR-10",
    **dict.fromkeys(("fedlaw", "fedawa", "fedlws"), "the code of that name: nothing is done"),
    **dict.fromkeys(("moon_tiny", "feduv_cifar10"), "the code of that name: nothing is done on this set"),
    **dict.fromkeys(
        ("simple_fl_cifar", "simple_fl_femnist", "wenzhu_femnist"), "FedEve's and its baselines' code: nothing is done"
    ),
}


def unchanged(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True)
class Augment:
    """What is done to training images. Two are equal if their texts are."""

    text: str
    raw: tuple[Step, ...] = field(default=(), repr=False)  # on pixels as they are stored
    late: tuple[Step, ...] = field(default=(), repr=False)  # on normalised ones

    def __bool__(self) -> bool:
        return len(self.raw) + len(self.late) > 0  # bool(tuple) cannot be traced in torch 2.11

    def on(self, device: torch.device | str) -> Augment:
        """The same with its tables on a device, so that a call copies nothing there."""

        def placed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
            return tuple(s.on(device) if isinstance(s, AutoAugment) else s for s in steps)

        return replace(self, raw=placed(self.raw), late=placed(self.late))

    def check(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Refuses samples (C, H, W) of this type, as they are stored, that the steps cannot take."""
        if not self:
            return
        if len(shape) < 3:
            raise Refused(f"augmentation is for images (channels, height, width), not samples of shape {tuple(shape)}")
        wrong = [p for step in self.raw for p in step.unfit(shape, dtype)]
        wrong += [p for step in self.late for p in step.unfit(shape, torch.float32)]
        if wrong:
            raise Refused(*wrong)

    def __call__(self, x: Tensor, keys: Tensor, prepare: Callable[[Tensor], Tensor] = unchanged) -> Tensor:
        """Images [..., C, H, W] and a key each [...] -> augmented images, normalised by `prepare`.

        What becomes of an image depends on its pixels and its key only.
        """
        self.check(tuple(x.shape[-3:]), x.dtype)
        steps = (*self.raw, *self.late)
        counts = [step.draws for step in steps]
        # One hash for all numbers of a sample: step by step, a GPU would spend more time starting than hashing.
        bits = noise.fold(keys.flatten()[:, None], torch.arange(sum(counts), device=x.device)).split(counts, 1)
        flat = x.flatten(0, -4) if x.dim() > 3 else x[None]
        for step, own in zip(self.raw, bits, strict=False):
            flat = step(flat, own)
        flat = prepare(flat)
        for step, own in zip(self.late, bits[len(self.raw) :], strict=True):
            flat = step(flat, own)
        return flat.reshape(x.shape)


def augmentation(text: str) -> Augment:
    """The augmentation that a text or the name of a code base stands for: `augmentation("crop(pad=4) + flip")`."""
    terms = calls(text, "augmentation")
    problems: list[str] = []
    written: list[tuple[str, Step | None]] = []
    for call in terms:
        if call.name in PRESETS and not call.options:
            written += [taken(inner, text, problems) for inner in calls(PRESETS[call.name], "augmentation")]
        else:
            written.append(taken(call, text, problems))
    names = [name for name, _ in written]
    if names.count(NORMALISE) > 1:
        problems.append(f"'{text.strip()}' normalises twice; keep one 'normalise'")
    if problems:
        raise Refused(*problems)
    cut = names.index(NORMALISE) if NORMALISE in names else len(names)
    raw, late = (tuple(step for _, step in part if step) for part in (written[:cut], written[cut:]))
    return Augment(canonical(raw, late), raw, late)


def taken(call: Call, text: str, problems: list[str]) -> tuple[str, Step | None]:
    """The step of a call, or what is wrong with it."""
    if call.name not in STEPS:
        known = [*STEPS, NORMALISE, NONE, *PRESETS]
        if call.name not in known:
            problems.append(unknown("augmentation", call.name, known, text, call.column))
        elif call.options:
            problems.append(f"'{call.name}' has no options; write out what it stands for: {PRESETS.get(call.name, '')}")
        return call.name, None
    kind = STEPS[call.name]
    found = option_problems(call.name, kind, call.options, sum(not f.compare for f in dataclasses.fields(kind)))
    step = None if found else kind(**call.options)
    problems += found if step is None else step.problems()
    return call.name, step


def canonical(raw: tuple[Step, ...], late: tuple[Step, ...]) -> str:
    """Steps with the options that differ from their defaults; `normalise` only where something follows it."""
    words = {kind: name for name, kind in STEPS.items()}
    parts = [expression(words[type(step)], changed(step)) for step in raw]
    if late:
        parts += [NORMALISE, *(expression(words[type(step)], changed(step)) for step in late)]
    return " + ".join(parts) or NONE


def changed(step: Step) -> dict[str, Any]:
    return {f.name: getattr(step, f.name) for f in dataclasses.fields(step)
            if f.compare and getattr(step, f.name) != f.default}  # fmt: skip


TAG, MOST = noise.tag("augment"), 16  # a batch has at most 2^16 rows


def row_keys(clients: Tensor, step: int | Tensor, rows: int) -> Tensor:
    """A key for every row of a local step [..., B], from one a client [...]. In one hash: a GPU would wait for more."""
    place = torch.arange(rows, device=clients.device) + (step << MOST)
    return noise.fold(clients[..., None] ^ TAG, place)
