"""`holdfast flower keys`: a certificate authority, the server's certificate, a key for every node, the allow-list.

For trying a federation on one machine and for small ones. Where there is an authority already, use its certificates,
and let every site make its own key and hand over the public half.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast import checkpoint
from holdfast.errors import Refused

DAYS = 365
HOSTS = ("127.0.0.1", "localhost")
Key = ec.EllipticCurvePrivateKey


def write(folder: Path, nodes: int, hosts: tuple[str, ...] = HOSTS) -> list[Path]:
    """Private keys can be read by their owner only; an older folder of keys is never written over."""
    if not (folder / "pyproject.toml").is_file():
        raise Refused(f"{folder} is not a Flower app: it has no pyproject.toml; write it by holdfast flower init")
    kept = folder / "keys"
    if kept.exists():
        raise Refused(
            f"{kept} exists; nodes that have these keys would be locked out, so remove it first if you mean it"
        )
    kept.mkdir(mode=0o700)
    authority, own = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    ca = certificate("holdfast authority", authority, "holdfast authority", authority, ())
    server = certificate("holdfast server", own, "holdfast authority", authority, hosts)
    files = {
        "ca.pem": pem(ca), "ca.key": private(authority),
        "server.pem": pem(server), "server.key": private(own),
    }  # fmt: skip
    listed = ["# The allow-list: who may take part. Client 0 is the first key."]
    for i in range(nodes):
        key = ec.generate_private_key(ec.SECP384R1())
        files |= {f"node-{i}.key": private(key, ssh=True), f"node-{i}.pub": public(key, ssh=True)}
        listed += ["", "[[node]]", f'name = "node-{i}"', f'key = """\n{public(key).decode()}"""']
    for name, content in files.items():
        secret(kept / name, content)
    checkpoint.replace(folder / "nodes.toml", ("\n".join(listed) + "\n").encode())
    return [kept / name for name in files] + [folder / "nodes.toml"]


def secret(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def certificate(name: str, key: Key, by: str, authority: Key, hosts: tuple[str, ...]) -> x509.Certificate:
    """Signed by the authority; without hosts, an authority itself."""
    began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)  # clocks differ
    made = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(by))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + datetime.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        .add_extension(usage(not hosts), critical=True)
    )
    if hosts:
        made = made.add_extension(x509.SubjectAlternativeName([host(h) for h in hosts]), critical=False)
    return made.sign(authority, hashes.SHA384())


def usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=authority, crl_sign=authority, key_encipherment=False,
        content_commitment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def pem(made: x509.Certificate) -> bytes:
    return made.public_bytes(serialization.Encoding.PEM)


def private(key: Key, ssh: bool = False) -> bytes:
    kind = serialization.PrivateFormat.OpenSSH if ssh else serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())


def public(key: Key, ssh: bool = False) -> bytes:
    """As Flower's command line reads it (ssh), or as its server tells it (PEM)."""
    forms = serialization.Encoding, serialization.PublicFormat
    kind = (forms[0].OpenSSH, forms[1].OpenSSH) if ssh else (forms[0].PEM, forms[1].SubjectPublicKeyInfo)
    return key.public_key().public_bytes(*kind)
