"""The connection to one dsched system's part of a Redis server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis._parsers import BaseParser
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from dsched import keepalive
from dsched.errors import NotAllowed, RedisUnavailable, StateError
from dsched.state import location
from dsched.state.location import shown as shown
from dsched.state.pipeline import Pipeline
from dsched.state.pipeline import Value as Value

SOCKET_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 2.0
"""Decisions wait about so long at most when Redis comes back elsewhere while somebody tries to connect to where it was;
long enough for a first packet that is lost."""
HEALTH_CHECK_S = 5
ONCE = Retry(NoBackoff(), 0)
ASKING_SENTINELS: dict[str, Any] = {
    "socket_timeout": 1.0,
    "socket_connect_timeout": 1.0,
    "socket_keepalive": True,
    "socket_keepalive_options": keepalive.OPTIONS,
    "retry": ONCE,
}
"""A Sentinel that does not answer soon is passed over for the next one: it may have been on the master's machine. The
client would ask it eleven times."""
SCANNED_AT_ONCE = 1000


class CannotPersist(redis.ResponseError):
    """Redis takes no writes because it cannot keep them: its disk is full, or fails (``MISCONF``)."""


class WrongType(StateError, redis.ResponseError):
    """Somebody else has put a value of another type where dsched keeps one of its own (``WRONGTYPE``)."""

    def __init__(self, text: str, **said: Any) -> None:
        told = text if "WRONGTYPE" in text else f"WRONGTYPE {text}"  # the client takes the code off
        super().__init__(f"a key of dsched holds what dsched does not write there, a leader clears it: {told}", **said)


NoPermission = redis.exceptions.NoPermissionError
"""This Redis user may not do that."""


class Busy(redis.ConnectionError):
    """Redis does nothing but run a script that takes too long (``BUSY``); nothing of what was asked was done. The
    connection is made anew."""


class TooFewReplicas(redis.ResponseError):
    """Redis takes no writes because not enough replicas follow it (``NOREPLICAS``)."""


# The client knows no such errors; its table is that of Celery's connections, too.
BaseParser.EXCEPTION_CLASSES["BUSY"] = Busy
BaseParser.EXCEPTION_CLASSES["MISCONF"] = CannotPersist
BaseParser.EXCEPTION_CLASSES["WRONGTYPE"] = WrongType
BaseParser.EXCEPTION_CLASSES["NOREPLICAS"] = TooFewReplicas
BaseParser.EXCEPTION_CLASSES["UNBLOCKED"] = redis.ReadOnlyError  # for whom it kept waiting when it became a replica


class Store:
    """One system's keys on one Redis server.

    Attributes:
        redis: the client; replies are bytes.
        name: the scheduler's cluster name, part of every key.
        url: where the server is, as given.
        line: the connection that scripts are sent on, where they are sent ahead.
    """

    def __init__(self, client: "redis.Redis", name: str, url: str, line: Pipeline | None = None) -> None:
        self.redis: Any = client
        self.name = name
        self.url = url
        self.line = line
        self._prefix = prefix(name)

    def key(self, suffix: str) -> str:
        """The full name of a key: ``dsched:{NAME}:SUFFIX``; the braces keep a system in one Redis Cluster slot."""
        return self._prefix + suffix

    def names(self, beginning: str) -> list[bytes]:
        """The full names of the keys whose suffix begins so, each once (SCAN may name a key twice)."""
        return list(dict.fromkeys(self.redis.scan_iter(match=self.pattern(beginning), count=SCANNED_AT_ONCE)))

    def pattern(self, beginning: str) -> str:
        """A pattern that the full names of the keys match whose suffix begins so, and no others."""
        return _literal(self.key(beginning)) + "*"

    def on(self, line: Pipeline) -> "Store":
        """The same store, whose scripts are sent on a line."""
        return Store(self.redis, self.name, self.url, line)

    def settle(self, number: int | None = None) -> None:
        """Wait for what was sent ahead, up to the script with a number where that is given.

        Raises:
            as `dsched.state.pipeline.Line.settle`.
        """
        if self.line is not None:
            self.line.settle(number)

    def close(self) -> None:
        """Give the connections back."""
        self.redis.close()


def prefix(name: str) -> str:
    """What every key of the system called ``name`` begins with."""
    return f"dsched:{{{name}}}:"


def _literal(text: str) -> str:
    """Text as a pattern that matches nothing but itself."""
    return "".join(f"\\{character}" if character in "*?[]\\" else character for character in text)


def connect(url: str, name: str = "default", patience_s: float | None = None) -> Store:
    """Connect to the Redis at ``url`` (see `dsched.state.location`); nothing is sent yet.

    Commands are never repeated by the client: a write whose reply was lost may have happened, and only the caller
    knows how to find out. Sentinels are asked for the master with every new connection.

    Args:
        patience_s: how long a reply may take; `SOCKET_TIMEOUT_S` without.

    Raises:
        StateError: the URL cannot be read.
    """
    found = location.read(url)
    options: dict[str, Any] = {
        "socket_timeout": SOCKET_TIMEOUT_S if patience_s is None else patience_s,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "health_check_interval": HEALTH_CHECK_S,
        "retry": ONCE,
        "client_name": "dsched",
    }
    if found.scheme != "unix":  # whose other end cannot go without this one hearing of it
        options |= {"socket_keepalive": True, "socket_keepalive_options": keepalive.OPTIONS}
    if not found.sentinels:
        return Store(redis.Redis.from_url(url, **options), name, url)
    tls = {"ssl": True, **found.tls_options} if found.tls else {}
    asked = Sentinel(  # type: ignore[no-untyped-call]
        found.sentinels, sentinel_kwargs={**ASKING_SENTINELS, **found.sentinel_options, **tls}
    )
    master: redis.Redis = asked.master_for(  # type: ignore[no-untyped-call]
        found.master, **{**options, **found.options, **tls}
    )
    return Store(master, name, url)


@contextmanager
def reachable(store: Store) -> Iterator[None]:
    """Turn the client's connection errors into one that says what to do.

    Raises:
        RedisUnavailable: the server does not answer, or is not ready to (loading, busy, a replica, full).
        NotAllowed: this user may not do that.
    """
    try:
        yield
    except NOT_DONE as error:
        raise explained(store, error) from error


def explained(store: Store, error: Exception) -> RedisUnavailable | NotAllowed:
    """The error that says what to do about one of `NOT_DONE`."""
    place = f"Redis at {shown(store.url)}"
    match error:
        case redis.exceptions.NoPermissionError():
            return not_allowed(store, str(error))
        case redis.OutOfMemoryError():
            return RedisUnavailable(f"{place} is full: {error}; give it more memory")
        case CannotPersist():
            return RedisUnavailable(f"{place} takes no writes: {error}; see to its disk")
        case TooFewReplicas():
            return RedisUnavailable(
                f"{place} takes no writes: {error} See to its replicas, or to min-replicas-to-write"
            )
        case Busy():
            return RedisUnavailable(
                f"{place} is busy with a script that takes too long; "
                "wait until it ends, or end it with: redis-cli SCRIPT KILL"
            )
    return RedisUnavailable(
        f"{place} does not answer ({error}); start it, or name another with --redis-url or DSCHED_REDIS_URL"
    )


def not_allowed(store: Store, text: str) -> NotAllowed:
    """The error for a command that this Redis user may not use; the server names command or key."""
    return NotAllowed(f"Redis at {shown(store.url)} does not allow its user to do this: {text}")


UNAVAILABLE = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.BusyLoadingError,
    redis.ReadOnlyError,
    redis.OutOfMemoryError,
    redis.exceptions.ExecAbortError,
    redis.exceptions.TryAgainError,
    redis.exceptions.ClusterDownError,
    Busy,
    CannotPersist,
    TooFewReplicas,
)
"""What the client raises while a server is away, starting, busy with somebody's script, demoted to a replica, without
its replicas (MasterDownError is a ClusterDownError), or full: then it takes no transactions, not even such that only
read. Where it is the disk that is full, it does not answer PING either. MOVED and ASK are not among them: a store is a
server that holds all of its keys."""
NOT_DONE = (*UNAVAILABLE, redis.exceptions.NoPermissionError)
"""What `explained` knows to explain."""
