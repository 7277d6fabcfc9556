"""Who may ask: hosts, tokens, sessions, and forms that come from the page itself. No I/O.

A page on this machine is reached by every web site that the user's browser visits, unless the name in the request is
looked at (DNS rebinding) and requests that change something carry what only the page itself knows (CSRF).
"""

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Collection
from dataclasses import dataclass, field

from dsched.clock import Clock
from dsched.errors import DschedError

TOKEN_BYTES = 32
SHORTEST_TOKEN = 16
SESSION_S = 12 * 3600.0
MOST_SESSIONS = 1000
_HERE = frozenset({"localhost"})
_NAME = re.compile(r"[a-z0-9_.-]+|\[[a-z0-9_.:%]+\]")


def loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host in _HERE


def checked_token(text: str, source: str) -> str:
    """A token that somebody chose.

    Raises:
        DschedError: it is too short to keep anybody out; the message does not hold it.
    """
    token = text.strip()
    if len(token) < SHORTEST_TOKEN:
        raise DschedError(
            f"the token in {source} has {len(token)} characters, fewer than {SHORTEST_TOKEN}; "
            "make one with: openssl rand -hex 32"
        )
    return token


def new_token() -> str:
    """One that nobody guesses."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def same(one: str, other: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell how much of them is."""
    return hmac.compare_digest(_digest(one), _digest(other))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names under which the page may be asked for.

    An address in numbers is always taken: only a name can be made to point here by somebody else.
    """

    names: frozenset[str]

    @staticmethod
    def of(host: str, more: Collection[str]) -> "Hosts":
        """Those of a server that listens on ``host``, and these."""
        own = set() if loopback(host) else {socket.gethostname().lower(), host.lower()}
        return Hosts(_HERE | own | {each.lower() for each in more})

    def takes(self, header: str) -> bool:
        """Whether a ``Host`` header names this page."""
        name = hostname(header)
        if name is None:
            return False
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name in self.names
        return True


def hostname(header: str) -> str | None:
    """The name in ``NAME[:PORT]``, None where it is none."""
    text = header.strip().lower()
    if text.startswith("["):
        name, bracket, port = text.partition("]")
        name = name + bracket if bracket else ""
    else:
        name, colon, port = text.partition(":")
        port = colon + port
    if not _NAME.fullmatch(name) or (port and not (port[0] == ":" and port[1:].isdecimal())):
        return None
    return name


def same_origin(host: str, origin: str | None, fetched_from: str | None) -> bool:
    """Whether a request comes from the page itself, or from no page at all (a command line tool).

    Args:
        host: of the request's ``Host`` header; origin, fetched_from: of ``Origin`` and ``Sec-Fetch-Site``.
    """
    if fetched_from not in (None, "same-origin", "none"):
        return False
    return origin is None or origin.lower().partition("://")[2] == host.strip().lower()


def embedded(fetched_from: str | None, mode: str | None, destination: str | None) -> bool:
    """Whether another site's page loads something of this one, other than by a link: it could not read the answer, but
    keep this machine busy. Frames navigate, too, but to no document of their own.

    Args:
        fetched_from, mode, destination: of ``Sec-Fetch-Site``, ``Sec-Fetch-Mode`` and ``Sec-Fetch-Dest``.
    """
    linked = mode == "navigate" and destination in (None, "document")
    return fetched_from in ("cross-site", "same-site") and not linked


@dataclass(slots=True)
class Sessions:
    """Who has shown the token, by what their browser was given for it; all are forgotten when the process ends."""

    clock: Clock
    _until_s: dict[str, float] = field(default_factory=dict)
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(TOKEN_BYTES))

    def begin(self) -> str:
        """A new session."""
        now_s = self.clock.monotonic()
        self._until_s = {each: until for each, until in self._until_s.items() if until > now_s}
        while len(self._until_s) >= MOST_SESSIONS:
            self._until_s.pop(next(iter(self._until_s)))
        session = secrets.token_urlsafe(TOKEN_BYTES)
        self._until_s[_digest(session).hex()] = now_s + SESSION_S
        return session

    def end(self, session: str) -> None:
        """Forget a session."""
        self._until_s.pop(_digest(session).hex(), None)

    def knows(self, session: str) -> bool:
        """Whether a session was begun here and is not over. Looked up by its hash: the time tells nothing of it."""
        return self._until_s.get(_digest(session).hex(), 0.0) > self.clock.monotonic()

    def form_key(self, session: str) -> str:
        """What the page puts into its forms; nobody else's page can read it."""
        return hmac.new(self._secret, session.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
