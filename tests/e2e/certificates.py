"""The certificates of a control plane, made by the openssl program: its authority, the server's, and clients'."""

import subprocess
from pathlib import Path

NEW_KEY = ("-newkey", "rsa:2048", "-nodes")
MAY_SIGN = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
"""Python 3.13 takes no authority without."""


class Authority:
    """A certificate authority of its own in a folder.

    Attributes:
        certificate: its PEM file, for those who are to trust it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate = folder / "ca.crt"
        folder.mkdir(parents=True, exist_ok=True)
        subject = ("-subj", "/CN=test-ca", *MAY_SIGN)
        self._openssl("req", "-x509", *NEW_KEY, "-keyout", "ca.key", "-out", "ca.crt", *subject)

    def server(self) -> tuple[Path, Path]:
        """Certificate and key of a server on 127.0.0.1."""
        return self._issue("server", "/CN=127.0.0.1", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")

    def client(self, user: str, group: str) -> tuple[Path, Path]:
        """Certificate and key of a user of a group."""
        return self._issue(user, f"/O={group}/CN={user}", "extendedKeyUsage=clientAuth\n")

    def key(self, name: str) -> Path:
        """A private key without a certificate."""
        self._openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{name}.key")
        return self._folder / f"{name}.key"

    def _issue(self, name: str, subject: str, extensions: str) -> tuple[Path, Path]:
        (self._folder / f"{name}.ext").write_text(extensions)
        self._openssl("req", *NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        issuer = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
        self._openssl("x509", "-req", "-in", f"{name}.csr", *issuer, "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        return self._folder / f"{name}.crt", self._folder / f"{name}.key"

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)
