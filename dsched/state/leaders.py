"""The leader processes, standbys among them: each notes itself, and which configuration it has.

For people alone: nothing is decided by it. `ask_reload` is how a command asks all of them to read their files again.
"""

import msgspec

from dsched.model import raw
from dsched.state import client, counters, keys
from dsched.state import time as redis_time
from dsched.state.client import Store

SILENT_AFTER_MS = 10_000
FORGOTTEN_AFTER_MS = 120_000


class LeaderNote(msgspec.Struct, frozen=True):
    """One leader process.

    Attributes:
        stage: leading, taking over or standing by.
        config: hash of the configuration it has.
        source: the file it was read from, empty for the default configuration.
        taken_ms: since when it has it, ms since the epoch.
        error: why the file as it is now was refused; empty where it was not.
        error_ms: since when.
        restart: what the file changes that only a restart takes up.
        reload: number of the last request to reload that it has answered.
        seen_ms: when it wrote this, by Redis' clock.
    """

    identity: str
    stage: str
    epoch: int
    config: str
    cluster: str
    source: str = ""
    taken_ms: int = 0
    error: str = ""
    error_ms: int = 0
    restart: tuple[str, ...] = ()
    reload: int = 0
    seen_ms: int = 0

    def silent(self, now_ms: int) -> bool:
        """Whether it has written nothing for too long."""
        return now_ms - self.seen_ms > SILENT_AFTER_MS


def note(store: Store, told: LeaderNote) -> None:
    """Tell about this process; forgets those that have been silent for long.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    name = store.key(keys.LEADERS.name)
    with client.reachable(store):
        told = msgspec.structs.replace(told, seen_ms=redis_time.now_ms(store))
        store.redis.hset(name, told.identity, msgspec.json.encode(told))
        gone = [each.identity for each in _read(store).values() if told.seen_ms - each.seen_ms > FORGOTTEN_AFTER_MS]
        if gone:
            store.redis.hdel(name, *gone)


def leave(store: Store, identity: str) -> None:
    """The process has ended.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        store.redis.hdel(store.key(keys.LEADERS.name), identity)


def read(store: Store) -> list[LeaderNote]:
    """Every leader process that has been seen lately, silent ones included, by identity.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        return sorted(_read(store).values(), key=lambda each: each.identity)


def ask_reload(store: Store) -> int:
    """Ask every leader process to read its configuration file again; returns the number that answers name.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        return counters.add(store, keys.RELOAD)


def asked(store: Store) -> int:
    """The number of the last request to reload, 0 before the first.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        return raw.whole(store.redis.get(store.key(keys.RELOAD.name)))


def _read(store: Store) -> dict[str, LeaderNote]:
    """What cannot be read, of another version, is left out."""
    found: dict[str, LeaderNote] = {}
    for name, text in store.redis.hgetall(store.key(keys.LEADERS.name)).items():
        try:
            found[raw.text(name)] = msgspec.json.decode(text, type=LeaderNote)
        except msgspec.DecodeError:
            continue
    return found
