"""URLs in expressions.

apiserver: ``pkg/cel/library/urls.go``; Go: ``net/url`` (``ParseRequestURI``).
"""

import re
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from dsched.cel.library.declarations import overload
from dsched.cel.values import Failure, MapValue, Url

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST = re.compile(
    r"(?:\[[0-9a-zA-Z:.%_~-]*\]|(?:[^\s\[\]/?#\\^`{|}%:\x00-\x20\x7f]|%[89a-fA-F][0-9a-fA-F]|%25)*)(?::[0-9]*)?"
)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PATH_SAFE = "/$&+,:;=@!'()*~-._[]"


def parse(text: str) -> Any:
    """An absolute URL or an absolute path; a `Failure` for text that is neither."""
    failed = Failure(f"URL parse error during conversion from string: {text[:200]!r}")
    if not text or any(each < " " or each == "\x7f" for each in text):
        return failed
    match = _SCHEME.fullmatch(text)
    if text == "*":
        return Url("", "", "*", "", text)
    if match is None and text[0] != "/":
        return failed
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    # ParseRequestURI checks all of the text as if it had no fragment; Parse then cuts the fragment off.
    if not _valid(scheme, rest):
        return failed
    written = f"{scheme}:{rest.removesuffix('#')}"
    rest = rest.partition("#")[0]
    rest, _, query = rest.partition("?")
    host, path = _authority(scheme, rest)
    if path and path[0] != "/" and scheme:
        return Url(scheme, "", "", query, written)
    return Url(scheme, _unescaped(host), _escaped(path), query, written)


def _authority(scheme: str, rest: str) -> tuple[str, str]:
    if not rest.startswith("//") or (not scheme and rest.startswith("///")):
        return "", rest
    authority, slash, path = rest[2:].partition("/")
    return authority.rpartition("@")[2], slash + path


def _valid(scheme: str, rest: str) -> bool:
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return bool(scheme)
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority = rest[2:].partition("/")[0]
        user, at, host = authority.rpartition("@")
        if at and not _USER.fullmatch(user):
            return False
        if not _HOST.fullmatch(host):
            return False
        if _ESCAPE.search(user):
            return False
    return not _ESCAPE.search(rest)


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace") if "%" in text else text


def _escaped(path: str) -> str:
    """The path as it was written where that is a valid form of it, else escaped anew."""
    if all(each in _PATH_SAFE or each == "%" or (each.isascii() and each.isalnum()) for each in path):
        return path
    return quote_from_bytes(unquote_to_bytes(path), safe="/$&+,:;=@~-._")


def _hostname(url: Url) -> str:
    host = url.host
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if _port(url) or host.endswith(":") else host


def _port(url: Url) -> str:
    _, colon, port = url.host.rpartition("]")[2].rpartition(":")
    return port if colon and port.isdigit() else ""


def _query(url: Url) -> MapValue:
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        if _ESCAPE.search(key) or _ESCAPE.search(value):
            continue
        found.setdefault(_unescaped(key.replace("+", " ")), []).append(_unescaped(value.replace("+", " ")))
    return MapValue(found)


OVERLOADS = [
    overload("url(string) -> URL", "string_to_url", parse),
    overload("isURL(string) -> bool", "is_url_string", lambda text: type(parse(text)) is Url),
    overload("URL::getScheme() -> string", "url_get_scheme", lambda url: url.scheme),
    overload("URL::getHost() -> string", "url_get_host", lambda url: url.host),
    overload("URL::getHostname() -> string", "url_get_hostname", _hostname),
    overload("URL::getPort() -> string", "url_get_port", _port),
    overload("URL::getEscapedPath() -> string", "url_get_escaped_path", lambda url: url.escaped_path),
    overload("URL::getQuery() -> map(string, list(string))", "url_get_query", _query),
]
