"""Lua scripts: files of their own, loaded once, called with a count of keys and arguments that their header fixes.

A script's file opens with a header that makes it callable unread::

    -- queue_pop: what it does, in one sentence.
    -- KEYS[1] queue:active  zset  what it holds
    -- ARGV[1] epoch         int   what it means
    -- RETURNS what comes back

``-- INCLUDE name`` is replaced by ``includes/name.lua``. A script that refuses replies with an error whose first word
is a code (``STALE_EPOCH``); such a script has changed nothing.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import redis

from dsched.errors import RedisUnavailable, ScriptError, StaleEpoch
from dsched.state.client import (
    UNAVAILABLE,
    Busy,
    CannotPersist,
    Store,
    TooFewReplicas,
    Value,
    WrongType,
    not_allowed,
    shown,
)

FOLDER = Path(__file__).parent / "scripts"

_INCLUDE = re.compile(r"^-- INCLUDE (\w+)$", re.MULTILINE)
_KEYS = re.compile(r"^-- KEYS\[(\d+)\]", re.MULTILINE)


_NOT_ALLOWED = ("-NOPERM ", "can't run this command", "ACL failure in script")
"""How Redis 6.2 and 7 say that a command within a script is not allowed."""

_AWAY: dict[str, type[Exception]] = {
    " -READONLY ": redis.ReadOnlyError,
    " -MISCONF ": CannotPersist,
    " -NOREPLICAS ": TooFewReplicas,
    " -MASTERDOWN ": redis.exceptions.MasterDownError,
    "Script killed by user": Busy,
}
"""How Redis 6.2 says within a script that it is not ready, and any Redis that somebody has ended the script with SCRIPT
KILL, which it allows only as long as nothing is written."""


class Script:
    """One Lua script, bound to a store."""

    def __init__(self, store: Store, name: str, folder: Path = FOLDER) -> None:
        """
        Raises:
            ScriptError: there is no such script, or its header or an include is missing.
        """
        self.name = name
        source = read(folder, name)
        self._key_count = len(_KEYS.findall(source))
        self._script = store.redis.register_script(source)
        self._store = store
        self._last: tuple[Sequence[str], list[str]] = (), []
        """The keys that were given last, which mostly are those of every call, and their full names."""

    def __call__(self, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:
        """Run it on the server.

        Args:
            keys: key suffixes in the header's order, without the system's prefix.
            args: ARGV in the header's order.

        Raises:
            StaleEpoch: the epoch (always ARGV[1] where there is one) is not the present one; nothing was changed.
            RedisUnavailable: the server's memory is full. What `UNAVAILABLE` lists: it is away or a replica.
            WrongType: a key holds what dsched does not write there.
            ScriptError: called with a wrong number of keys, or the script itself failed.
        """
        names, line = self._names(keys), self._store.line
        if line is not None:
            return line.call(self._script, names, args, partial(self._named, args))
        try:
            return self._script(keys=names, args=args)
        except redis.ResponseError as error:
            raise self._named(args, error) from None

    def ahead(self, keys: Sequence[str], args: Sequence[Value] = (), then: Callable[[Any], None] | None = None) -> int:
        """Run it on the server without waiting for it, where the store has a line; returns its number for
        `Store.settle`.

        Args:
            then: is given what comes back, once somebody waits for a script that was sent later.

        Raises:
            as a call. Where the store has a line, so does what is next waited for on it.
        """
        line = self._store.line
        if line is None:
            answer = self(keys, args)
            if then is not None:
                then(answer)
            return 0
        return line.send(self._script, self._names(keys), args, partial(self._named, args), then)

    def _names(self, keys: Sequence[str]) -> list[str]:
        if len(keys) != self._key_count:
            raise ScriptError(f"{self.name}: {len(keys)} keys given, its header names {self._key_count}")
        if keys != self._last[0]:
            self._last = tuple(keys), [self._store.key(key) for key in keys]
        return self._last[1]

    def _named(self, args: Sequence[Value], error: redis.ResponseError) -> Exception:
        """The error of a script as an error of ours. What a command within a script answers is handed on by Redis 7,
        but wrapped by Redis 6.2 (``Error running script … -OOM …``)."""
        text = str(error)
        if text.startswith("STALE_EPOCH"):
            return StaleEpoch(int(args[0]), self.name)
        if isinstance(error, redis.OutOfMemoryError) or " -OOM " in text:
            return RedisUnavailable(f"Redis at {shown(self._store.url)} is full, nothing was changed: {text}")
        if isinstance(error, UNAVAILABLE):
            return error
        if isinstance(error, redis.exceptions.NoPermissionError) or any(mark in text for mark in _NOT_ALLOWED):
            return not_allowed(self._store, text)
        for mark, away in _AWAY.items():
            if mark in text:
                return away(text.partition(mark)[2] or text)
        if isinstance(error, WrongType):
            return error
        if "WRONGTYPE " in text:
            return WrongType(f"{self.name}: {text}")
        return ScriptError(f"{self.name}: {text}")


@cache
def read(folder: Path, name: str) -> str:
    """The text of a script with its includes put in.

    Raises:
        ScriptError: the script, its header or an include is missing.
    """
    path = folder / f"{name}.lua"
    if not path.is_file():
        raise ScriptError(f"{name}: there is no script {path}")
    source = path.read_text()
    if not source.startswith(f"-- {name}: "):
        raise ScriptError(f"{path}: does not open with a header '-- {name}: what it does'")

    def include(match: re.Match[str]) -> str:
        part = folder / "includes" / f"{match.group(1)}.lua"
        if not part.is_file():
            raise ScriptError(f"{path}: include {match.group(1)} is not in {part.parent}")
        return part.read_text()

    return _INCLUDE.sub(include, source)
