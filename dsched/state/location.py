"""Where a Redis is: its URL, read for the client and for Celery, and shown without what is secret in it.

::

    redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]                              rediss:// with TLS
    redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/MASTER[/DB]    rediss+sentinel:// with TLS
    unix://[USER[:PASSWORD]@]/PATH[?db=DB]

Options follow after ``?``: ``ssl_ca_certs``, ``ssl_certfile``, ``ssl_keyfile``, ``ssl_cert_reqs``; for Sentinel also
``sentinel_username`` and ``sentinel_password``. User and password before the ``@`` are those of Redis itself. With TLS
the server's certificate is checked unless ``ssl_cert_reqs=none`` says otherwise.
"""

import re
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from redis.connection import parse_url

from dsched.errors import StateError

SENTINEL_PORT = 26379
_SENTINEL = "sentinel_"
_FORM = re.compile(r"(?P<scheme>[a-z+]+)://(?:(?P<user>[^@/?#]*)@)?(?P<rest>[^@]*)", re.DOTALL)
_HOSTS = re.compile(r"(?P<hosts>[^/?#]+)/(?P<master>[^/?#]+)(?:/(?P<db>[0-9]+))?/?(?:\?(?P<query>[^#]*))?")
_HOST = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
_CREDENTIALS = re.compile(r"^([^:/@]*://+)?(.*)@", re.DOTALL)
_SECRET_OPTION = re.compile(r"((?:^|[?&])[a-z_]*password=)[^&#]*", re.IGNORECASE)
_EXPECTED = (
    "redis://HOST:PORT/DB, rediss://HOST:PORT/DB, redis+sentinel://HOST:PORT,HOST:PORT/MASTER/DB or unix:///PATH; in a "
    "user's name and password every character but letters, digits, '-', '.', '_' has to be percent-encoded"
)
_REQUIREMENTS = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class Location:
    """A URL, taken apart.

    Attributes:
        scheme: ``redis``, ``rediss`` or ``unix``, without ``+sentinel``.
        options: keyword arguments of a Redis connection: host, db, username, password, TLS.
        sentinels: host and port of each; empty where Redis itself is named.
        master: the name by which the Sentinels know it.
        sentinel_options: keyword arguments of a connection to a Sentinel.
    """

    scheme: str
    options: dict[str, Any] = field(repr=False)
    sentinels: tuple[tuple[str, int], ...] = ()
    master: str = ""
    sentinel_options: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.scheme == "rediss"

    @property
    def tls_options(self) -> dict[str, Any]:
        """What the URL says of TLS; the server has to prove who it is unless it says otherwise."""
        given = {name: value for name, value in self.options.items() if name.startswith("ssl_")}
        asked = str(given.get("ssl_cert_reqs", "required")).lower().removeprefix("cert_")
        return {**given, "ssl_cert_reqs": _REQUIREMENTS.get(asked, ssl.CERT_REQUIRED)} if self.tls else {}


def read(url: str) -> Location:
    """Take a URL apart.

    Raises:
        StateError: it is none, or of a kind that is not known; the message holds nothing secret.
    """
    form = _FORM.fullmatch(url)
    scheme, _, way = form["scheme"].partition("+") if form else ("", "", "")
    if form is None or scheme not in ("redis", "rediss", "unix") or way not in ("", "sentinel"):
        raise _wrong(url)
    try:
        if way == "sentinel" and scheme != "unix":
            return _of_sentinels(scheme, form["user"] or "", form["rest"])
        if way:
            raise ValueError(way)
        return Location(scheme, _options(url))
    except ValueError:
        raise _wrong(url) from None  # the cause may quote a part of the password


def _of_sentinels(scheme: str, user: str, rest: str) -> Location:
    parts = _HOSTS.fullmatch(rest)
    if parts is None:
        raise ValueError("hosts")
    given = parse_qsl(parts["query"] or "", keep_blank_values=True)
    query = urlencode([(name, value) for name, value in given if not name.startswith(_SENTINEL)])
    options = _options(f"{scheme}://{user + '@' if user else ''}redis/{parts['db'] or 0}?{query}")
    for name in ("host", "port"):
        options.pop(name, None)
    asked = {name.removeprefix(_SENTINEL): value for name, value in given if name.startswith(_SENTINEL)}
    if unknown := asked.keys() - {"username", "password"}:
        raise ValueError(unknown)
    sentinels = tuple(_host(text) for text in parts["hosts"].split(","))
    return Location(scheme, options, sentinels, unquote(parts["master"]), asked)


def _host(text: str) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    port = int(found["port"] or SENTINEL_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        raise ValueError("host")
    return found["host"].strip("[]"), port


def _options(url: str) -> dict[str, Any]:
    """As redis-py reads it; which class connects follows from the scheme."""
    found: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    found.pop("connection_class", None)
    return found


def _wrong(url: str) -> StateError:
    return StateError(f"{shown(url)} is not a Redis URL; expected {_EXPECTED}")


def shown(url: str) -> str:
    """The URL with its passwords hidden, for messages; also one that cannot be read."""
    text = _SECRET_OPTION.sub(r"\1***", url)
    found = _CREDENTIALS.match(text)
    if found is None:
        return text
    start, user = found[1] or "", found[2]
    name, colon, _ = user.partition(":")
    hidden = name + ":***" if colon else name
    return f"{start}{hidden}@{text[found.end() :]}"


def broker(url: str) -> dict[str, Any]:
    """The settings by which Celery finds the same Redis.

    Celery itself would not check the certificate of a ``rediss`` URL that says nothing of it.

    Raises:
        StateError: as `read`.
    """
    found = read(url)
    user = _user(found.options)
    if found.sentinels:
        db = found.options.get("db", 0)
        hosts = [f"sentinel://{user}{_bracketed(host)}:{port}/{db}" for host, port in found.sentinels]
        return {"broker_url": ";".join(hosts), **({"broker_use_ssl": found.tls_options} if found.tls else {})}
    if found.scheme == "unix":
        path = quote(str(found.options["path"]), safe="/")
        return {"broker_url": f"redis+socket://{user}{path}?virtual_host={found.options.get('db', 0)}"}
    if not found.tls:
        return {"broker_url": url}
    place = f"{_bracketed(str(found.options.get('host', 'localhost')))}:{found.options.get('port', 6379)}"
    return {
        "broker_url": f"rediss://{user}{place}/{found.options.get('db', 0)}",
        "broker_use_ssl": found.tls_options,
    }


def _user(options: dict[str, Any]) -> str:
    name, password = (quote(str(options.get(part) or ""), safe="") for part in ("username", "password"))
    return f"{name}:{password}@" if password else f"{name}@" if name else ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
