"""TLS towards an extender, as kube-scheduler sets it up.

Source: pkg/scheduler/extender.go ``makeTransport``; client-go transport ``TLSConfigFor``.
"""

import base64
import binascii
import ssl
import tempfile
from pathlib import Path

from dsched.config import Extender, ExtenderTls
from dsched.errors import PluginError

_NONE = ExtenderTls(False, "", "", "", "", "", "", "")


def context(extender: Extender) -> ssl.SSLContext:
    """The context for ``https`` addresses. Without an authority of its own, ``enableHTTPS`` means that the extender's
    certificate is not verified; without ``enableHTTPS``, it is, by the machine's authorities.

    Raises:
        PluginError: a file cannot be read, is not PEM, or the settings contradict each other.
    """
    tls = extender.tls or _NONE
    authority = _text(extender, "caData", tls.ca_data, "caFile", tls.ca_file)
    insecure = tls.insecure or (extender.enable_https and not authority)
    if authority and insecure:
        raise _refused(extender, "insecure and a certificate authority exclude each other; remove one of them")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if insecure:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        elif authority:
            made.load_verify_locations(cadata=authority)
        else:
            made.load_default_certs()
        _load_certificate(extender, tls, made)
    except (ssl.SSLError, ValueError) as error:
        raise _refused(extender, f"not PEM certificates and keys: {error}") from error
    return made


def server_name(extender: Extender) -> str:
    """The name that the extender's certificate has to have, ``""`` for that of its address."""
    return extender.tls.server_name if extender.tls else ""


def _load_certificate(extender: Extender, tls: ExtenderTls, made: ssl.SSLContext) -> None:
    certificate = _text(extender, "certData", tls.cert_data, "certFile", tls.cert_file)
    key = _text(extender, "keyData", tls.key_data, "keyFile", tls.key_file)
    if not certificate or not key:
        if certificate or key:
            raise _refused(extender, "a client certificate needs both certificate and key; add the other one")
        return
    with tempfile.TemporaryDirectory(prefix="dsched-") as folder:  # ssl reads them from files only
        paths = Path(folder) / "cert.pem", Path(folder) / "key.pem"
        for path, text in zip(paths, (certificate, key), strict=True):
            path.write_text(text)
        made.load_cert_chain(*paths)


def _text(extender: Extender, data_field: str, data: str, file_field: str, file: str) -> str:
    """PEM text; data goes before the file."""
    try:
        if data:
            return base64.b64decode(data).decode("ascii")
        return Path(file).read_text("ascii") if file else ""
    except OSError as error:
        raise _refused(extender, f"{file_field} {file} cannot be read: {error.strerror}") from error
    except (binascii.Error, UnicodeDecodeError) as error:
        raise _refused(extender, f"{data_field if data else file_field} is not PEM") from error


def _refused(extender: Extender, what: str) -> PluginError:
    return PluginError(f"extender {extender.url_prefix}: tlsConfig: {what}")
