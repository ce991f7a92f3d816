"""AutoAugment's operations against Pillow and SciPy to the byte, then the whole policy against the port's procedure."""

import numpy as np
import pytest
import torch

from holdfast import noise
from holdfast.data import pixels
from holdfast.data.augment import augmentation
from holdfast.data.autoaugment import CODES, moved
from holdfast.data.autoaugment import toned as by_table
from holdfast.data.steps import turned

Image = pytest.importorskip("PIL.Image", reason="pillow is the oracle here")
ndimage = pytest.importorskip("scipy.ndimage", reason="scipy is the oracle here")
from PIL import ImageEnhance, ImageOps  # noqa: E402

torch.set_num_threads(1)
MANY = 400
RNG = np.random.default_rng(0)


def pictures(channels, many=MANY, height=32, width=32):
    """Images of all ranges: dark, light, narrow, constant, of two values, with and without 0 and 255."""
    low, span = (RNG.integers(0, 250, (many, 1, 1, 1)), RNG.integers(1, 257, (many, channels, 1, 1)))
    noisy = np.clip(low + RNG.integers(0, 256, (many, channels, height, width)) % span, 0, 255)
    slope = np.linspace(0, 1, width) * RNG.integers(1, 256, (many, channels, 1, 1)) + RNG.integers(0, 3, noisy.shape)
    noisy[many // 2 :] = np.clip(slope, 0, 255)[many // 2 :]
    noisy[0], noisy[1], noisy[2] = 0, 255, 77
    noisy[3] = np.where(RNG.random(noisy[3].shape) < 0.5, 3, 250)
    return noisy.astype(np.uint8)


def pillow(image):
    return Image.fromarray(image.transpose(1, 2, 0) if len(image) == 3 else image[0])


def back(image):
    found = np.asarray(image)
    return found.transpose(2, 0, 1) if found.ndim == 3 else found[None]


def enhanced(kind):
    return lambda image, value: kind(image).enhance(value)


ORACLES = {  # the range of the value that is tried, and Pillow's function; also beyond the policy's range
    "Invert": (0, 1, lambda image, _: ImageOps.invert(image)),
    "AutoContrast": (0, 1, lambda image, _: ImageOps.autocontrast(image)),
    "Equalize": (0, 1, lambda image, _: ImageOps.equalize(image)),
    "Solarize": (0, 256, lambda image, value: ImageOps.solarize(image, value)),  # pyright: ignore[reportArgumentType]
    "Posterize": (0.6, 8, lambda image, value: ImageOps.posterize(image, round(value))),
    "Contrast": (0, 2.5, enhanced(ImageEnhance.Contrast)),
    "Color": (0, 2.5, enhanced(ImageEnhance.Color)),
    "Brightness": (0, 2.5, enhanced(ImageEnhance.Brightness)),
    "Sharpness": (0, 2.5, enhanced(ImageEnhance.Sharpness)),
}


def ours(name, x, value):
    if name in ("Color", "Sharpness"):
        return getattr(pixels, name.lower())(x, value)
    return by_table(x, torch.full((len(x),), CODES[name]), value)


@pytest.mark.parametrize("channels", [3, 1])
@pytest.mark.parametrize("name", ORACLES)
def test_an_operation_equals_pillows_to_the_byte(name, channels):
    low, high, oracle = ORACLES[name]
    x, value = pictures(channels), RNG.uniform(low, high, MANY)
    value[:8] = low, high, 1.0, 1.0, 1.5, 2.5, 6.5, 7.5  # Python rounds a half to even
    found = ours(name, torch.from_numpy(x), torch.from_numpy(value)).numpy()
    for image, number, changed in zip(x, value, found, strict=True):
        assert (back(oracle(pillow(image), float(number))) == changed).all()


@pytest.mark.parametrize("shape", [(3, 5), (2, 2), (64, 48), (1, 7)])
@pytest.mark.parametrize("name", ["Equalize", "Sharpness", "Contrast"])
def test_other_sizes_of_images(name, shape):
    x, value = pictures(3, 40, *shape), RNG.uniform(0.1, 1.9, 40)
    found = ours(name, torch.from_numpy(x), torch.from_numpy(value)).numpy()
    for image, number, changed in zip(x, value, found, strict=True):
        assert (back(ORACLES[name][2](pillow(image), float(number))) == changed).all()


def test_autocontrast_cuts_as_pillow_does_for_every_pair_of_ends():
    # All 32,640 pairs of a lowest and a highest value, every value between them, by Pillow's own two lines.
    for low in range(256):
        highs = np.arange(low + 1, 256)
        if not len(highs):
            continue
        x = np.empty((len(highs), 1, 1, 2), np.uint8)
        x[..., 0], x[..., 1] = low, highs[:, None, None]
        table = pixels.autocontrast(torch.from_numpy(x))[:, 0].numpy()
        scale = 255.0 / (highs - low)
        wanted = np.trunc(np.arange(256) * scale[:, None] + (-low * scale)[:, None]).clip(0, 255)
        assert (table == wanted).all()


@pytest.mark.parametrize("shape", [(32, 32), (9, 14)])
def test_a_rotation_equals_pillows_nearest(shape):
    # torchvision's RandomRotation on a Pillow image is image.rotate(angle) with its defaults.
    x, degrees = pictures(3, 200, *shape), RNG.uniform(-180, 180, 200)
    found = turned(torch.from_numpy(x), torch.from_numpy(degrees)).numpy()
    for image, angle, changed in zip(x, degrees, found, strict=True):
        assert (back(pillow(image).rotate(angle)) == changed).all()


def scipys(name, image, value):
    """The port's geometric operations (FedDecorr, data_aug_utils.py), written from their description."""
    height, width = image.shape[-2:]
    angle = np.deg2rad(value)
    matrix = {
        "Rotate": [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0]],
        "ShearY": [[1, 0, 0], [value, 1, 0]],
        "TranslateX": [[1, 0, 0], [0, 1, width * value]],
        "TranslateY": [[1, 0, height * value], [0, 1, 0]],
    }[name]
    there = np.array([[1, 0, height / 2 + 0.5], [0, 1, width / 2 + 0.5], [0, 0, 1]])
    whole = there @ np.array([*matrix, [0, 0, 1]]) @ np.linalg.inv(there)
    return np.stack([ndimage.affine_transform(plane, whole[:2, :2], whole[:2, 2]) for plane in image])


SPANS = {"Rotate": 30, "ShearY": 0.3, "TranslateX": 150 / 331, "TranslateY": 150 / 331}


@pytest.mark.parametrize("shape", [(32, 32), (8, 13)])
@pytest.mark.parametrize("name", SPANS)
def test_a_map_equals_scipys_cubic_spline_to_the_byte(name, shape):
    x, value = pictures(3, 100, *shape), RNG.uniform(-SPANS[name], SPANS[name], 100)
    found = moved(torch.from_numpy(x), torch.full((100,), CODES[name]), torch.from_numpy(value)).numpy()
    for image, number, changed in zip(x, value, found, strict=True):
        assert (scipys(name, image, number) == changed).all()


# models-data-metrics.md B2, as it stands there: three sub-policies a line, read along the line.
SPEC = """
Invert .1 7 | Contrast .2 6        Rotate .7 2 | TranslateX .3 9      Sharpness .8 1 | Sharpness .9 3   ShearY .5 8 | TranslateY .7 9
AutoContrast .5 8 | Equalize .9 2  ShearY .2 7 | Posterize .3 7       Color .4 3 | Brightness .6 7      Sharpness .3 9 | Brightness .7 9
Equalize .6 5 | Equalize .5 1      Contrast .6 7 | Sharpness .6 5     Color .7 7 | TranslateX .5 8      Equalize .3 7 | AutoContrast .4 8
TranslateY .4 3 | Sharpness .2 6   Brightness .9 6 | Color .2 8       Solarize .5 2 | Invert .0 3       Equalize .2 0 | AutoContrast .6 0
Equalize .2 8 | Equalize .6 4      Color .9 9 | Equalize .6 6         AutoContrast .8 4 | Solarize .2 8 Brightness .1 3 | Color .7 0
Solarize .4 5 | AutoContrast .9 3  TranslateY .9 9 | TranslateY .7 9  AutoContrast .9 2 | Solarize .8 3 Equalize .8 8 | Invert .1 3
TranslateY .7 9 | AutoContrast .9 1
"""  # noqa: E501
WORDS = SPEC.replace("|", " ").split()
POLICY = [(WORDS[i], float(WORDS[i + 1]), int(WORDS[i + 2])) for i in range(0, len(WORDS), 3)]
ENDS = {  # "each range is cut into 10 intervals by 11 points; level l draws uniformly in interval [l, l+1]"
    **{name: (0.1, 1.9) for name in ("Contrast", "Color", "Brightness", "Sharpness")},
    **{name: (-span, span) for name, span in SPANS.items()}, "Solarize": (0, 256), "Posterize": (4, 8),
}  # fmt: skip


def policy_by_hand(image, u):
    """u: which sub-policy, whether the first and the second operation, their places within their intervals."""
    which = int(25 * u[0])
    for k, (name, p, level) in enumerate(POLICY[2 * which : 2 * which + 2]):
        if u[1 + k] < p:
            low, high = ENDS.get(name, (0, 0))
            points = np.linspace(low, high, 11)
            value = points[level] + (points[level + 1] - points[level]) * u[3 + k]
            image = scipys(name, image, value) if name in SPANS else back(ORACLES[name][2](pillow(image), value))
    return image


def test_the_whole_policy_equals_the_ports_procedure():
    assert len(POLICY) == 50
    x, keys = pictures(3, 1000), torch.from_numpy(RNG.integers(0, 1 << 32, 1000))
    draws = noise.fold(keys[:, None], torch.arange(5)).double().numpy() / 2**32  # a number in [0, 1) for each draw
    assert set((25 * draws[:, 0]).astype(int)) == set(range(25))
    found = augmentation("autoaugment")(torch.from_numpy(x), keys).numpy()
    wrong = [i for i in range(1000) if (policy_by_hand(x[i], draws[i]) != found[i]).any()]
    assert not wrong


def test_sub_policies_are_equally_likely():
    # 25 cells, 10,000 images of seed-free keys 0..9999; 51.18 is the 99.9 % point of chi-square with 24 degrees.
    draws = noise.fold(torch.arange(10_000)[:, None], torch.arange(5)).double().numpy() / 2**32
    counts = np.bincount((25 * draws[:, 0]).astype(int), minlength=25)
    assert ((counts - 400) ** 2 / 400).sum() < 51.18
