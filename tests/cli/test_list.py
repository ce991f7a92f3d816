"""`holdfast list`: what options can name (its tables are tested in tests/docs)."""

from holdfast.data.augment import PRESETS, STEPS
from holdfast.data.normal import CONSTANTS
from holdfast.data.splits import RULES
from holdfast.models import MODELS

WANTED = {
    "split": {*RULES, "flower:NAME"},
    "model": set(MODELS),
    "augment": {*STEPS, "normalise", *PRESETS},
    "normalize": set(CONSTANTS),
}


def test_every_name_is_listed(hold):
    for kind, names in WANTED.items():
        done = hold(f"list {kind} --json")
        assert (done.code, done.err) == (0, "")
        assert {row["name"] for row in done.rows} == names and {row["kind"] for row in done.rows} == {kind}
        text = hold(f"list {kind}").out
        assert all(f"\n{name.removesuffix('NAME')}" in f"\n{text}" for name in names)


def test_all_of_them(hold):
    words = set(hold("list").out.replace(",", " ").replace(";", " ").split())
    assert all(names <= words for names in WANTED.values())
    rows = hold("list --json").rows
    assert [kind for kind in dict.fromkeys(row["kind"] for row in rows)] == list(WANTED)


def test_one_in_full(hold):
    out = " ".join(hold("list split dirichlet").out.split())
    for word in ("alpha=..., clients=100", "'recycled' FL-Simulator's", "`sigma` > 0", "P5r = A", "P1 = D"):
        assert word in out, word
    (row,) = hold("list model lenet --json").rows
    assert row["parameters"] == 31_972 and row["options"] == {
        "form": "'eve'"
    }  # A2: LeNet-5 of FedEve's code, 62 classes
    assert "crop(pad=4) + flip + autoaugment" in hold("list augment fedgh").out
    assert "0.4914, 0.4822, 0.4465" in hold("list normalize feduv_cifar10").out


def test_unknown_ones(hold):
    done = hold("list split dirichelt")
    assert done.code == 2 and "--split names no 'dirichelt'; did you mean dirichlet?" in done.err
    done = hold("list splits")
    assert done.code == 2 and "did you mean split?" in done.err and "Traceback" not in done.err
    done = hold("list model zzz")
    assert done.code == 2 and "see holdfast list model" in done.err
