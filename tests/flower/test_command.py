"""`holdfast flower`: what it writes, what it keeps out of the app, what it refuses."""

import pytest

pytest.importorskip("flwr", reason="needs the extra: pip install holdfast[flower]", exc_type=ImportError)

import importlib.util
import io
import json
import tomllib
import zipfile

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key
from flwr.cli.build import build_fab_from_disk
from flwr.cli.config_utils import load_and_validate

from holdfast.cli import main
from holdfast.flower.server import listed

INIT = ["--method", "scaffold + specgrad(r=0.05)", "--model", "mlp", "--rounds", "3"]


def flower(*words):
    return main(["flower", *map(str, words)])


@pytest.fixture
def app(tmp_path, capsys):
    folder = tmp_path / "fed"
    assert flower("init", folder, *INIT) == 0 and flower("keys", folder, "--nodes", 3) == 0
    assert f"holdfast flower start {folder}" in capsys.readouterr().out
    return folder


def test_flower_accepts_the_app_and_no_key_is_in_it(app):
    config, warnings = load_and_validate(app / "pyproject.toml")
    assert not warnings and config["tool"]["flwr"]["app"]["config"]["method"].startswith("scaffold")
    inside = zipfile.ZipFile(io.BytesIO(build_fab_from_disk(app)))
    named = {"server_app.py", "client_app.py", "site_data.py", "nodes.toml"}
    assert {name for name in inside.namelist() if not name.startswith((".info", "pyproject"))} == named
    assert not any(b"PRIVATE KEY" in inside.read(name) for name in inside.namelist())
    assert all(len((app / name).read_text().splitlines()) < 25 for name in named - {"nodes.toml"})


def test_keys_are_what_they_should_be(app, capsys):
    """The server's certificate is signed by the authority, for loopback only; keys are read by their owner alone."""
    ca, server = (
        x509.load_pem_x509_certificate((app / "keys" / f"{name}.pem").read_bytes()) for name in ("ca", "server")
    )
    server.verify_directly_issued_by(ca)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert {path.stat().st_mode & 0o77 for path in (app / "keys").iterdir()} == {0}
    ssh = [load_ssh_public_key((app / "keys" / f"node-{i}.pub").read_bytes()) for i in range(3)]
    assert [load_pem_public_key(key) for key in listed(app / "nodes.toml")] == ssh
    before = (app / "nodes.toml").read_text()
    assert flower("keys", app) == 2 and "remove it first" in capsys.readouterr().err
    assert (app / "nodes.toml").read_text() == before


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--policy", "hope"], "there are wait, drop, quorum, deadline"),
        (["--sites", "0"], "sites=0"),
        (["--cohort", "4"], "cohort=4 is more than the 3 clients"),
        (["--method", "scafold"], "did you mean scaffold"),
        (["--method", "fedlaw"], "samples at the server"),
        (["--data", "nowhere"], "unknown data set 'nowhere'"),
        (["--secagg"], "secagg: not offered"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(more, said, tmp_path, capsys):
    assert flower("init", tmp_path / "fed", *more) == 2
    told = capsys.readouterr().err
    assert said in told and "Traceback" not in told and not (tmp_path / "fed").exists()


def test_secure_aggregation_is_refused_with_the_reason(tmp_path, capsys):
    """`individual` of the data sheet: a median needs every update; an average does not."""
    needs = "needs each client's own update"
    assert flower("init", tmp_path / "a", "--secagg", "--method", "fedavg + median") == 2
    assert needs in capsys.readouterr().err
    assert flower("init", tmp_path / "b", "--secagg", "--method", "fedavg") == 2
    assert needs not in capsys.readouterr().err


def test_folders_that_are_not_as_expected(tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    assert flower("init", tmp_path / "full") == 2 and "not an empty folder" in capsys.readouterr().err
    assert flower("keys", tmp_path / "full") == 2 and "no pyproject.toml" in capsys.readouterr().err
    assert flower("start", tmp_path / "full") == 2
    assert "lacks pyproject.toml, nodes.toml, keys/ca.pem" in capsys.readouterr().err


def test_json_and_options(tmp_path, capsys):
    assert flower("init", tmp_path / "fed", "--steps", 2, "--policy", "quorum(n=2)", "--sites", 4, "--json") == 0
    files = json.loads(capsys.readouterr().out)["files"]
    told = tomllib.loads((tmp_path / "fed" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    assert len(files) == 6 and told["steps"] == 2 and "epochs" not in told and told["clients"] == 4
    assert told["policy"] == "quorum(n=2)" and told["out"] == str(tmp_path / "fed" / "run")


def test_without_the_extra(monkeypatch, capsys):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "flwr" else found(name, *a))
    assert flower("start", "fed") == 2 and "pip install holdfast[flower]" in capsys.readouterr().err
