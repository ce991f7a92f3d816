"""Augmentation: its text, crops and flips against slicing by hand, their distribution, and that samples stand alone."""

import hashlib

import numpy as np
import pytest
import torch

from holdfast.data.augment import PRESETS, augmentation, row_keys
from holdfast.data.normal import CONSTANTS
from holdfast.data.plan import keys
from holdfast.data.sets import digits
from holdfast.errors import Refused

torch.set_num_threads(1)
PAD, SIDE, MANY = 4, 12, 8100
NINE = 2 * PAD + 1
# The 99.9 % points of the chi-square distribution with so many degrees of freedom (scipy.stats.chi2.ppf(.999, k)).
CHI2 = {7: 24.32, 79: 123.6, 80: 124.84, 143: 201.0}


def pictures(many, channels=3, side=SIDE, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (many, channels, side, side), dtype=np.uint8)


def keyed(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 1 << 32, shape))


def done(text, x, prepare=None, seed=0):
    args = (prepare,) if prepare else ()
    return augmentation(text)(torch.from_numpy(x), keyed(len(x), seed=seed), *args).numpy()


def offsets(padded, found):
    """Where in the padded images [N, C, H + 2 pad, ...] the windows are; -1 where nowhere."""
    side = found.shape[-1]
    place = np.full((len(found), 2), -1)
    for i in range(NINE):
        for j in range(NINE):
            same = (padded[:, :, i : i + side, j : j + side] == found).all((1, 2, 3))
            place[same] = i, j
    return place


def edges(mode, **options):
    return lambda x: np.pad(x, np.array([[0, 0], [0, 0], [PAD, PAD], [PAD, PAD]]), mode=mode, **options)


def chi_square(counts):
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize(
    ("text", "padded"),
    [
        ("crop(pad=4)", edges("constant")),
        ("crop(pad=4, fill=7)", edges("constant", constant_values=7)),
        ("crop(pad=4, border='reflect')", edges("reflect")),
    ],
)
def test_a_crop_is_a_window_of_the_padded_image_and_every_window_is_as_likely(text, padded):
    # torchvision's RandomCrop(side, padding=4): both offsets uniform in 0..8. np.pad and slicing are the oracle.
    x = pictures(MANY)
    place = offsets(padded(x), done(text, x))
    assert place.min() >= 0
    counts = np.bincount(NINE * place[:, 0] + place[:, 1], minlength=NINE**2)
    assert chi_square(counts) < CHI2[80]


def test_fl_simulators_crop_leaves_half_of_the_images_alone():
    # B2: flip p=.5, then crop p=.5, zeros in normalised space. Of 8100 images .5 + .5/81 stay in place; 5 sd = 2.8 %.
    x, mean, std = pictures(MANY), 120.0, 60.0
    found = done("fl_simulator", x, lambda t: (t.double() - mean) / std)
    normal = (x.astype(np.float64) - mean) / std
    places = [offsets(edges("constant")(n), found) for n in (normal, normal[..., ::-1])]
    flipped = places[1].min(1) >= 0
    place = np.where(flipped[:, None], places[1], places[0])
    assert place.min() >= 0  # each is a window of the image or of its mirror image, on a ground of exactly 0
    assert abs(flipped.mean() - 0.5) < 5 * 0.5 / MANY**0.5
    centre = (place == PAD).all(1)
    assert abs(centre.mean() - (0.5 + 0.5 / 81)) < 5 * 0.5 / MANY**0.5
    moved = place[~centre]
    counts = np.delete(np.bincount(NINE * moved[:, 0] + moved[:, 1], minlength=NINE**2), NINE * PAD + PAD)
    assert chi_square(counts) < CHI2[79]
    # Whether an image is flipped says nothing of where it is cut: first rows off the middle, among the flipped.
    rows = moved[flipped[~centre], 0]
    assert chi_square(np.bincount(rows[rows != PAD], minlength=NINE)[[0, 1, 2, 3, 5, 6, 7, 8]]) < CHI2[7]


def test_the_border_is_black_before_normalising_and_the_mean_after():
    x = np.full((200, 1, 4, 4), 100, np.uint8)

    def prepare(t):
        return (t.float() - 100) / 50

    assert set(done("crop(pad=4)", x, prepare).flatten()) == {0.0, -2.0}
    assert set(done("normalise + crop(pad=4)", x, prepare).flatten()) == {0.0}


def test_a_flip_is_the_mirror_image():
    x = pictures(4000)
    found = done("flip", x)
    as_is, mirrored = ((found == y).all((1, 2, 3)) for y in (x, x[..., ::-1]))
    assert (as_is ^ mirrored).all()
    assert abs(mirrored.mean() - 0.5) < 5 * 0.5 / 4000**0.5  # 5 sd of a binomial
    assert (done("flip(p=1)", x) == x[..., ::-1]).all()


def test_every_step_draws_for_itself():
    # Two flips, on either side of normalising: with the same draws they would always undo each other.
    x = pictures(4000, 1)
    found = done("flip + normalise + flip", x)
    assert abs((found == x[..., ::-1]).all((1, 2, 3)).mean() - 0.5) < 5 * 0.5 / 4000**0.5


def test_cutout_is_fedsols_square():
    # B2's FedSOL: the centre uniform over the pixels, [c - 8, c + 8) zeroed in normalised space, cut at the edge.
    x = np.full((3000, 2, SIDE, SIDE), 200, np.uint8)
    found = done("normalise + cutout(size=6)", x, lambda t: t.float())
    wanted = {}
    for i in range(SIDE):
        for j in range(SIDE):
            image = np.full((2, SIDE, SIDE), 200, np.float32)
            image[:, max(i - 3, 0) : i + 3, max(j - 3, 0) : j + 3] = 0
            wanted[image.tobytes()] = i, j
    place = np.array([wanted[image.tobytes()] for image in found])
    assert len(wanted) == SIDE**2  # every centre leaves another image, so the image tells the centre
    assert chi_square(np.bincount(SIDE * place[:, 0] + place[:, 1], minlength=SIDE**2)) < CHI2[143]


EVERY = sorted({*PRESETS.values(), "rotate(degrees=90)", "autoaugment + flip(p=0.3)"} - {"none"})


@pytest.mark.parametrize("text", EVERY)
def test_a_sample_depends_on_its_own_pixels_and_key_only(text):
    augment, x, own = augmentation(text), torch.from_numpy(pictures(60, side=16)), keyed(60)

    def prepare(t):
        return (t.float() - 120.7) / 64.15

    whole = augment(x, own, prepare)
    order = torch.from_numpy(np.random.default_rng(1).permutation(60))
    assert torch.equal(augment(x[order], own[order], prepare), whole[order])
    assert torch.equal(torch.cat([augment(x[i : i + 7], own[i : i + 7], prepare) for i in range(0, 60, 7)]), whole)
    assert torch.equal(augment(x.view(3, 4, 5, 3, 16, 16), own.view(3, 4, 5), prepare).flatten(0, 2), whole)
    assert torch.equal(augment(x[11], own[11], prepare), whole[11])
    assert not torch.equal(augment(x, own + 1, prepare), whole)


@pytest.mark.parametrize("text", ["fl_simulator", "fedsol", "moon_cifar10", "moon_cifar100", "feddecorr_auto"])
def test_it_traces_whole_and_compiled_bytes_are_the_same(text):
    # Traced, AutoAugment changes all images and keeps some, as on a GPU; else it picks them out.
    augment, x, own = augmentation(text), torch.from_numpy(pictures(40, side=16)).view(4, 10, 3, 16, 16), keyed(4, 10)
    traced = torch.compile(lambda x, own: augment(x, own), backend="eager", fullgraph=True, dynamic=False)
    assert torch.equal(traced(x, own), augment(x, own))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("text", EVERY)
def test_a_gpu_gives_the_same_bytes(text, compiled):
    x, own = torch.from_numpy(pictures(200, side=32)), keyed(200)
    augment = augmentation(text).on("cuda")

    def call(x, own):
        return augment(x, own)

    call = torch.compile(call, fullgraph=True, dynamic=False) if compiled else call
    assert torch.equal(call(x.cuda(), own.cuda()).cpu(), augmentation(text)(x, own))


@pytest.mark.slow
@pytest.mark.parametrize("text", ["moon_cifar100", "fl_simulator"])
def test_compiled_code_gives_the_same_bits(text):
    augment, x, own = augmentation(text), torch.from_numpy(pictures(40, side=16)), keyed(40)
    compiled = torch.compile(lambda x, own: augment(x, own, lambda t: t / 255), fullgraph=True, dynamic=False)
    assert torch.equal(compiled(x, own), augment(x, own, lambda t: t / 255))


def test_keys_of_rows_are_all_different_and_do_not_depend_on_company():
    clients = keys(3, 1, torch.arange(20))
    own = row_keys(clients[:, None], torch.arange(5)[:, None], 50)
    assert own.shape == (20, 5, 50) and len(own.unique()) == own.numel()
    assert torch.equal(row_keys(clients[7:9], 4, 60)[:, :50], own[7:9, 4]) and torch.equal(
        row_keys(clients[3], 2, 50), own[3, 2]
    )
    assert not torch.isin(row_keys(keys(3, 2, torch.arange(20))[:, None], torch.arange(5)[:, None], 50), own).any()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("crop(pad=4,p=1.0)+flip", "crop(pad=4) + flip"),
        ("fl_simulator", "normalise + flip + crop(p=0.5, pad=4)"),
        ("crop(pad=4) + flip + normalise", "crop(pad=4) + flip"),
        ("none", "none"),
        ("normalise", "none"),
        ("moon_cifar10 + cutout(size=4)", "crop(border='reflect', pad=4) + flip + cutout(size=4)"),
    ],
)
def test_equal_augmentations_have_equal_texts(text, canonical):
    made = augmentation(text)
    assert made.text == canonical and augmentation(canonical) == made and hash(made) == hash(augmentation(canonical))
    assert bool(made) == (canonical != "none")


def test_a_code_base_has_its_augmentation_by_the_name_of_its_constants():
    """models-data-metrics.md B2: FedLAW's family, FedUV on CIFAR, MOON on Tiny, simple-FL and wenzhu do nothing."""
    lacking = [name for name in CONSTANTS if name not in PRESETS]
    assert lacking == ["half", "fl_simulator_mnist"], "the one is no code base; of the other nothing is stated"
    nothing = {name for name, text in PRESETS.items() if text == "none"}
    assert nothing == {"fedlaw", "fedawa", "fedlws", "moon_tiny", "feduv_cifar10", "simple_fl_cifar",
                       "simple_fl_femnist", "wenzhu_femnist"}  # fmt: skip
    assert not any(map(augmentation, nothing))
    assert PRESETS["feddecorr_cifar10"] == "crop(pad=4) + flip"
    assert PRESETS["feddecorr_cifar100"] == "crop(pad=4) + flip + autoaugment"


def test_every_preset_reads_back():
    assert all(augmentation(augmentation(name).text) == augmentation(text) for name, text in PRESETS.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("crop", ["crop needs the option 'pad'"]),
        ("corp(pad=4)", ["unknown augmentation 'corp'", "did you mean crop"]),
        ("crop(pad=0, p=2, fill='x', border='wrap')", ["pad=0", "p=2", "fill='x'", "no border 'wrap'"]),
        ("flip(p=0) + cutout(size=-1) + rotate(degrees=0)", ["p=0", "size=-1", "degrees=0"]),
        ("autoaugment(table=3)", ["autoaugment has no option 'table'"]),
        ("normalise + flip + normalise", ["normalises twice"]),
        ("fl_simulator(pad=8)", ["'fl_simulator' has no options", "crop(pad=4, p=0.5)"]),
        ("", ["not a augmentation: it is empty"]),
        ("crop(pad=4) - flip", ["not a augmentation"]),
    ],
)
def test_wrong_texts_are_refused_with_every_reason(text, said):
    with pytest.raises(Refused) as caught:
        augmentation(text)
    assert all(words in str(caught.value) for words in said)


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "said"),
    [
        ("autoaugment", (3, 8, 8), torch.float32, "works on bytes"),
        ("normalise + autoaugment", (3, 8, 8), torch.uint8, "before 'normalise'"),
        ("autoaugment", (2, 8, 8), torch.uint8, "1 or 3 channels"),
        ("crop(pad=8, border='reflect')", (3, 8, 8), torch.uint8, "larger than 8"),
        ("crop(pad=4, fill=0.5)", (3, 8, 8), torch.uint8, "no value of a byte"),
        ("flip", (64,), torch.uint8, "for images"),
    ],
)
def test_samples_that_a_step_cannot_take_are_refused(text, shape, dtype, said):
    with pytest.raises(Refused, match=said):
        augmentation(text).check(shape, dtype)


GOLDEN = {
    "none": "a3dfce9d8f0a6614a2acec9ec64f8882362ba4ca76ee4cc691a34dd0796fb3ab",
    "feddecorr": "f54034f3ea8506a9ece2c25c0bb1836d8c5e4843aea8fddd630b47f98dcf0bdc",
    "fl_simulator": "1dd7b873447cf1bbb956f10ecb640ab97a161a78cfb25e56c52797d9715ae3a5",
    "fl_simulator_tiny": "131024e1e81eee63fa756b919dfddbc9cfd53cc6e5e5378866c1bd9c711a8d10",
    "feddecorr_tiny": "7f83e8099ab83f3df055b79abf3dbf4bf10966e8da6dcb03c79351a56387c287",
    "feddecorr_auto": "2d60179fad1f6185bec39d5a2b8b59ffa335e360ce7de5e114ef34b75de18561",
    "moon_cifar10": "2046c2b3364bf54b44b53db0ea92969e11d64cb5245f1802c522b6a0eee9f9f9",
    "moon_cifar100": "902554987cacc9ca5d679f92301deb7e600d4db2bc3160ead2254ac11873e89b",
    "fedsol": "59ec91dcb7dc65b5f928091cb0e25c26729a0a4453ebe7d8244fc1ceae7d9712",
}


@pytest.mark.parametrize("text", ["none", *PRESETS])
def test_golden_first_batch_of_digits(text):
    # The first 50 training digits of seed 0, client 0, round 0. Made by this code, once its oracles above held.
    data = digits()
    own = row_keys(keys(0, 0, torch.arange(1)), 0, 50)[0]
    batch = augmentation(text)(data.x[:50], own, lambda x: data.prepare(x, torch.float32))
    known = {augmentation(name): found for name, found in GOLDEN.items()}  # presets that do the same share one
    assert hashlib.sha256(batch.numpy().tobytes()).hexdigest() == known[augmentation(text)]
