"""Where the API server is, and how to prove who is asking.

Kubeconfig files, exec plugins, service accounts and their tokens are read by the official client; it is imported on
first use. Certificates are read again once their files change, tokens asked for again every `REFRESH_S`, so both may be
rotated.
"""

import http.client
import os
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dsched import keepalive
from dsched.errors import ClusterUnavailable, ConfigError

DEFAULT_KUBECONFIG = Path("~/.kube/config")
REFRESH_S = 10.0
"""How often the official client is asked whether the token is still the same."""
RENEW_S = 1.0
"""Credentials are not read anew more often than this, however often the API server refuses them."""


class Access:
    """Opens connections to one API server and knows the credentials for it; for any thread. Everything is read on
    first use, and raises ConfigError when there are no usable credentials, or the official client is not installed.

    Args:
        kubeconfig: file; None for ``KUBECONFIG``, else the service account of the pod that this runs in, else
            ``~/.kube/config``.
        context: of the kubeconfig file; None for its current one.
    """

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._lock = threading.Lock()
        self._configuration: Any = None
        self._loaded_at = self._asked_at = 0.0
        self._authorization = ""
        self._tls: ssl.SSLContext | None = None
        self._tls_of: tuple[object, ...] = ()
        self.url, self.host, self.path = "", "", ""
        self.secure, self.port = True, 443

    def load(self) -> None:
        """Read everything, unless it has been read."""
        with self._lock:
            if self._configuration is None:
                self._read()

    def _read(self) -> None:
        found = _load(self._kubeconfig, self._context)
        self._authorization = _authorization(found)
        self._loaded_at = self._asked_at = time.monotonic()
        self.url = str(found.host)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"the API server's address {self.url!r} is not http://… or https://…")
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        self.path = parts.path.rstrip("/")
        self._configuration = found

    def authorization(self) -> str:
        """The value of the header Authorization, ``""`` for none."""
        self.load()
        now = time.monotonic()
        if now - self._asked_at > REFRESH_S:
            with self._lock:
                self._asked_at = now
                self._authorization = _authorization(self._configuration)
        return self._authorization

    def renew(self) -> None:
        """The API server refused the credentials: read them anew."""
        with self._lock:
            if time.monotonic() - self._loaded_at > RENEW_S:
                self._read()

    def open(self, timeout_s: float) -> socket.socket:
        """A new connection, its TLS handshake done.

        Raises:
            ClusterUnavailable: there is none to be had.
        """
        self.load()
        try:
            connection = _Connection(self, self._configuration, timeout_s, self._trust() if self.secure else None)
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise ClusterUnavailable(f"no connection to the API server {self.url}: {error}") from error
        sock: socket.socket = connection.sock
        return sock

    def _trust(self) -> ssl.SSLContext:
        """The TLS settings of all connections, made anew when a certificate's file has changed. One at a time: reading
        certificates takes OpenSSL longer than a handshake, and a new leader opens two dozen connections at once."""
        with self._lock:
            stamp = _stamp(self._configuration)
            if self._tls is None or stamp != self._tls_of:
                self._tls, self._tls_of = _tls(self._configuration), stamp
            return self._tls


class _Connection(http.client.HTTPConnection):
    """Used for connecting only: through a proxy where there is one, and with another TLS name where asked for."""

    def __init__(self, access: Access, configuration: Any, timeout_s: float, tls: ssl.SSLContext | None) -> None:
        self._server = access.host
        self._tls = tls
        self._tls_name = configuration.tls_server_name or access.host
        proxy = _proxy(configuration)
        if proxy is None:
            super().__init__(access.host, access.port, timeout=timeout_s)
        else:
            super().__init__(*proxy, timeout=timeout_s)
            self.set_tunnel(access.host, access.port, dict(configuration.proxy_headers or {}))

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in keepalive.OPTIONS.items():
            self.sock.setsockopt(socket.IPPROTO_TCP, option, value)
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._tls_name)


def _stamp(configuration: Any) -> tuple[object, ...]:
    """What the TLS settings are made from, and when it was written last."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    written = ((name, Path(name).stat()) for name in files if name)
    return (bool(configuration.verify_ssl), *((name, found.st_mtime_ns, found.st_ino) for name, found in written))


def _tls(configuration: Any) -> ssl.SSLContext:
    found = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    # Clusters' own authorities often lack what strict checking wants; Go's clients do not ask for it either.
    found.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        found.check_hostname = False
        found.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        found.load_cert_chain(configuration.cert_file, configuration.key_file or None)
    return found


def _proxy(configuration: Any) -> tuple[str, int] | None:
    from kubernetes.client.rest import should_bypass_proxies

    if not configuration.proxy or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return None
    parts = urlsplit(configuration.proxy)
    if parts.scheme != "http" or not parts.hostname:
        raise ConfigError(f"proxy {configuration.proxy}: only http:// proxies are taken")
    return parts.hostname, parts.port or 80


def _authorization(configuration: Any) -> str:
    settings: Mapping[str, Mapping[str, Any]] = configuration.auth_settings()
    return str(settings.get("BearerToken", {}).get("value") or "").strip()


def import_client() -> tuple[Any, Any]:
    """The official client's modules ``client`` and ``config``.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        from kubernetes import client, config
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error}; install what a real cluster needs: pip install 'dsched[kubernetes]'") from error
    return client, config


def _load(kubeconfig: str | None, context: str | None) -> Any:
    client, config = import_client()
    found = client.Configuration()
    file = kubeconfig or os.environ.get("KUBECONFIG") or None
    try:
        if file is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=found)
        else:
            path = file or str(DEFAULT_KUBECONFIG.expanduser())
            config.load_kube_config(path, context, client_configuration=found, persist_config=False)
    except (config.ConfigException, OSError) as error:
        raise ConfigError(
            f"no access to a Kubernetes cluster: {error}; name a kubeconfig file with --kubeconfig or KUBECONFIG"
        ) from error
    return found
