"""HTTP to one address, each exchange within a time and a number of bytes, from connecting to the last byte of the body.

A timeout for each read would not do: an answer that drips in, header or body, never meets it. Here every wait, those of
the TLS handshake among them, ends when the exchange's time is over, and so does the thread that waits. TLS is set up as
kube-scheduler does it.

Source: pkg/scheduler/extender.go ``makeTransport``; client-go transport ``TLSConfigFor``.
"""

import base64
import binascii
import ipaddress
import ssl
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from dsched.config import Extender, ExtenderTls
from dsched.errors import PluginError
from dsched.extenders.limits import TooMuch

KEPT_S = 90.0
"""How long an idle connection is kept. Source: net/http ``DefaultTransport.IdleConnTimeout``."""
_PIECE = 64 * 2**10
"""Bytes that are handed to the system at a time."""
_NO_TLS = ExtenderTls(False, "", "", "", "", "", "", "")


@dataclass(slots=True)
class Budget:
    """What is left of an exchange.

    Attributes:
        until: when its time is over, by the machine's monotonic clock.
        most: bytes that may come in, ``left`` of which have not.
    """

    until: float
    most: int
    left: int

    def seconds(self) -> float:
        """How long may still be waited.

        Raises:
            httpcore.ReadTimeout: no longer.
        """
        left = self.until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("its time is over")
        return left

    def came(self, count: int) -> None:
        """
        Raises:
            TooMuch: so many bytes were not left.
        """
        self.left -= count
        if self.left < 0:
            raise TooMuch(f"the answer is larger than {self.most} bytes")


class Backend(httpcore.NetworkBackend):
    """Connections whose every wait is bounded by the exchange that the thread is at."""

    def __init__(self) -> None:
        self._system = httpcore.SyncBackend()
        self._thread = threading.local()

    @contextmanager
    def exchange(self, seconds: float, most: int) -> Iterator[None]:
        """In this thread: an exchange that may take so long, with so many bytes of an answer at most."""
        self._thread.budget = Budget(time.monotonic() + seconds, most, most)
        try:
            yield
        finally:
            del self._thread.budget

    @property
    def budget(self) -> Budget:
        """That of the exchange at hand."""
        found: Budget = self._thread.budget
        return found

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        seconds = self.budget.seconds()
        return _Stream(self, self._system.connect_tcp(host, port, seconds, local_address, socket_options))


class _Stream(httpcore.NetworkStream):
    def __init__(self, backend: Backend, inner: httpcore.NetworkStream) -> None:
        self._backend = backend
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        budget = self._backend.budget
        found = self._inner.read(max_bytes, budget.seconds())
        budget.came(len(found))
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        budget = self._backend.budget
        for start in range(0, len(buffer), _PIECE):
            self._inner.write(buffer[start : start + _PIECE], budget.seconds())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        seconds = self._backend.budget.seconds()
        return _Stream(self._backend, self._inner.start_tls(ssl_context, server_hostname, seconds))

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def pool(url: str, context: ssl.SSLContext, backend: Backend, kept: int) -> httpcore.ConnectionPool:
    """Connections to an address, or to the proxy that the environment names for it, so many of them kept while idle."""
    options: dict[str, Any] = {
        "ssl_context": context,
        "max_connections": None,
        "max_keepalive_connections": kept,
        "keepalive_expiry": KEPT_S,
        "network_backend": backend,
    }
    proxy = _proxy(url)
    if not proxy:
        return httpcore.ConnectionPool(**options)
    found = urlsplit(proxy)
    user = (unquote(found.username), unquote(found.password or "")) if found.username else None
    return httpcore.HTTPProxy(proxy_url=proxy, proxy_auth=user, **options)


def _proxy(url: str) -> str:
    """The proxy for an address, empty where there is none; none is asked for this machine itself.

    Source: net/http ``ProxyFromEnvironment``.
    """
    found = urlsplit(url)
    proxies = getproxies()
    host = found.hostname or ""
    if host == "localhost" or _is_loopback(host) or proxy_bypass(host):
        return ""
    proxy = proxies.get(found.scheme, "")
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def ascii_url(url: str) -> str:
    """An address as it goes over the wire.

    Raises:
        ValueError: it is none.
    """
    found = urlsplit(url)
    place = found.netloc if found.netloc.isascii() else found.netloc.encode("idna").decode()
    return found._replace(netloc=place, path=quote(found.path, safe="/%:@!$&'()*+,;=~")).geturl()


def tls_context(extender: Extender) -> ssl.SSLContext:
    """The context for ``https`` addresses. Without an authority of its own, ``enableHTTPS`` means that the extender's
    certificate is not verified; without ``enableHTTPS``, it is, by the machine's authorities.

    Raises:
        PluginError: a file cannot be read, is not PEM, or the settings contradict each other.
    """
    tls = extender.tls or _NO_TLS
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
