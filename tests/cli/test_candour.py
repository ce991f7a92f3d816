"""What is said is true and leads on: of models, of numbers, of figures that mean nothing."""

import json
import math
from pathlib import Path

import pytest

import holdfast as hf

BASE = "run --threads 1 --split 'iid(clients=10)' --cohort 2 --epochs 1 --rounds 2"

# Models that are none


FORWARDS = [
    ("[self.head(x)]", "list"),
    ("{'logits': self.head(x)}", "dict"),
    ("None", "NoneType"),
    ("(None, x)", "a tuple of NoneType, Tensor"),
    ("()", "a tuple of nothing"),
    ("(self.head(x), 'features')", "a tuple of Tensor, str"),
    ("self.head(x).argmax(1)", "(2,)"),
    ("self.head(x).long()", "int64"),
    ("self.head(x)[:1]", "(1, 10)"),
    ("{}['logits']", "KeyError"),
    ("self.nothing(x)", "AttributeError"),
    ("never(x)", "NameError"),
    ("fail(AssertionError())", "AssertionError"),
    ("fail(StopIteration())", "StopIteration"),
    ("fail(Exception('two\\nlines'))", "two"),
    ("self.head(x) if not self.training else [self.head(x)]", "list"),
    ("self.head(x) if not self.training else {}['late']", "late"),
]


@pytest.mark.parametrize(("returned", "word"), FORWARDS, ids=[f[0][:40] for f in FORWARDS])
@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_a_model_that_returns_something_else(hold, module, tmp_path, returned, word, engine):
    # docs/models.md: a torch.nn.Module that returns logits; task.Output: or (logits, features).
    name = module(
        "from torch import nn\ndef fail(error): raise error\nclass Mine(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(64, 10)\n"
        f"    def forward(self, x):\n        x = x.flatten(1)\n        return {returned}\n"
        "def model(): return Mine()\n"
    )
    done = hold(f"{BASE} --model {name}:model --engine {engine} --out a")
    assert done.code == 2 and "model" in done.err and word in done.err, done.err
    assert "unexpected" not in done.err and "Traceback" not in done.err
    assert not (tmp_path / "a").exists()
    if "training" not in returned:
        assert f"{name}:model" in done.err and ("logits" in done.err), done.err


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize("tensor", ["weight", "running_var"])
def test_a_model_that_begins_with_what_is_not_finite(hold, module, tmp_path, value, tensor):
    name = module(
        "from torch import nn\ndef model():\n"
        "    m = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 10))\n"
        f"    m[1].{tensor}.data[3] = float('{value}')\n    return m\n"
    )
    done = hold(f"{BASE} --model {name}:model --out a")
    assert done.code == 2 and f"1.{tensor}" in done.err and "not finite" in done.err, done.err
    assert not (tmp_path / "a").exists()


# Options


def test_numbers_are_checked_with_all_else(hold):
    done = hold("run --rounds abc --method fedporx --lr x --seed 1.5 --proxy y")
    assert done.code == 2
    words = ("rounds='abc'", "at least 1", "'fedporx'", "lr='x'", "seed=1.5", "proxy='y'")
    assert all(word in done.err for word in words), done.err
    done = hold("compare --methods fedporx --seeds x --target y --batch z --out c")
    assert done.code == 2 and all(word in done.err for word in ("'fedporx'", "seeds='x'", "target='y'", "batch='z'"))


def test_a_name_is_suggested_only_where_one_is_near(hold):
    # The two dashes that all options share make no two of them alike.
    assert "did you mean" not in hold("run --bogus 3").err
    assert "did you mean --rounds?" in hold("run --round 3").err


@pytest.mark.parametrize("method", ["feddyn(alpha=1e999)", "prox(mu=-1e999)"])
def test_what_is_not_finite_is_called_that(hold, method):
    done = hold(f"run --method '{method}'")
    assert done.code == 2 and "must be finite" in done.err and ">=" not in done.err


@pytest.mark.parametrize("options", [{"lr": 10**400}, {"dtype": [1]}, {"proxy": 10**400}], ids=str)
def test_numbers_from_python_that_are_none(options):
    with pytest.raises(hf.Refused, match=next(iter(options))):
        hf.run(rounds=1, **options)


@pytest.mark.parametrize("part", ["coordclip", "gcpert", "l2pert", "specpert", "specpert(r=0.1) + prox"])
def test_a_part_that_needs_company_is_told_with_a_command_that_works(hold, part):
    done = hold(["explain", part, "--model", "logreg"])
    assert done.code == 2
    line = done.err.splitlines()[-1].partition("holdfast ")[2]
    assert line == f'explain "sam + {part}"'
    assert hold(line).code == 0


def test_a_refusal_that_company_cannot_mend_suggests_none(hold):
    assert 'holdfast explain "' not in hold("explain scafold").err
    assert 'holdfast explain "' not in hold("explain scaffold --lr -1").err


# Figures


def test_a_loss_beyond_all_sense_is_said(hold, folder):
    # commands.md: a loss that is not finite or above a million times ln(classes). One step of lr 1e30 leaves weights
    # of about 1e30.
    done = hold(f"{BASE} --model logreg --lr 1e30 --json --out a")
    assert done.code == 0 and done.rows[-1]["summary"]["diverged"] == 1, done.err
    assert "diverged in round 1" in done.err.splitlines()[-1]
    assert all(row["diverged"] for row in folder("a").metrics)
    done = hold("run --out a --resume")
    assert "diverged in round 1" in done.err and "diverged 1" not in done.out
    assert hold("report a -o r.html").code == 0
    page = Path("r.html").read_text()
    assert "Diverged" in page and "1 diverged" in page


def test_the_bound_of_a_loss_is_a_million_times_that_of_guessing():
    from holdfast.rows import marked

    bound = 1e6 * math.log(10)
    row = {"round": 1, "trained": 2, "train_loss": 2.3, "loss": 2.3}
    assert "diverged" not in marked(row | {"loss": 0.99 * bound}, 10)
    assert marked(row | {"loss": 1.01 * bound}, 10)["diverged"]
    assert marked(row | {"train_loss": 1.01 * bound}, 10)["diverged"]
    assert marked(row | {"train_loss": None}, 10)["diverged"]  # what is not finite is null
    assert "diverged" not in marked(row | {"train_loss": None, "trained": 0}, 10)  # nobody trained


def test_a_loss_that_is_only_large_is_no_divergence(hold):
    # A linear model at a large rate is a perceptron: its loss is large and its accuracy is not that of guessing.
    done = hold(f"{BASE} --model logreg --lr 100 --json")
    assert done.code == 0 and "diverged" not in done.rows[-1]["summary"] and "diverged" not in done.err
    assert done.rows[-1]["summary"]["last_accuracy"] > 0.5


def test_a_comparison_marks_what_diverged(hold):
    line = "compare --threads 1 --split 'iid(clients=10)' --cohort 2 --model logreg --rounds 2 --seeds 2 --out c"
    done = hold(f"{line} --methods 'fedavg; server(lr=1e30)' --json")
    assert done.code == 0 and "server(lr=1e+30), seed 0 diverged in round 1" in done.err.replace("1e30", "1e+30")
    last = json.loads(done.out.splitlines()[-1])
    assert [row["seeds"] for row in last["table"]] == ["2", "2 (2 diverged)"]
    assert "Diverged" in last["verdict"] and "server(lr=1e30)" in last["verdict"]
    done = hold("compare --out c --resume --json")  # and again, when all is done
    assert json.loads(done.out.splitlines()[-1])["table"] == last["table"]


# Remarks


def test_the_engines_reason_claims_only_what_was_measured(hold):
    # engines.json has logreg at 64 inputs with 10 clients.
    line = "run --threads 1 --split 'iid(clients=20)' --model logreg --rounds 1 --epochs 1"
    assert "nearest" not in hold(f"{line} --cohort 10").err
    assert "with 10 clients and 64 inputs, the nearest measured" in hold(f"{line} --cohort 11").err


def test_a_label_that_no_training_sample_has_is_told_with_the_classes_it_makes(hold, module):
    name = module(
        "import numpy as np\nd = np.random.default_rng(0)\nx = d.normal(size=(60, 4))\ny = d.integers(0, 3, 60)\n"
        "t = y.copy()\nt[0] = 7\ndef data(): return x, y, x, t\n"
    )
    done = hold(f"{BASE} --split 'iid(clients=4)' --data {name}:data --model logreg")
    assert done.code == 0 and "no training sample has: 7" in done.err and "8 classes" in done.err, done.err
