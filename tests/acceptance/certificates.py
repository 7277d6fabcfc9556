"""A certificate authority and a certificate for 127.0.0.1, made by the openssl program."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Certificates:
    """PEM files; the certificate serves both ends."""

    authority: Path
    certificate: Path
    key: Path


def make(folder: Path) -> Certificates:
    """Make them; skips the test where there is no openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates with")
    folder.mkdir()
    made = Certificates(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    new_key = ("-newkey", "rsa:2048", "-nodes")
    may_sign = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 asks for it
    _openssl(
        folder, "req", "-x509", *new_key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=test-ca", *may_sign
    )
    _openssl(folder, "req", *new_key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=127.0.0.1")
    authority = ("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial")
    _openssl(folder, "x509", "-req", "-in", "request.pem", *authority, "-extfile", "names", "-out", "cert.pem")
    return made


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)
