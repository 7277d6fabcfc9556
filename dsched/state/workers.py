"""Which workers take tasks: each notes it itself, in a task that ran there, so that a worker which is alive but takes
nothing shows as silent."""

from collections.abc import Iterable
from dataclasses import dataclass

from dsched.model.raw import is_whole, whole
from dsched.state import keys
from dsched.state.client import Store, WrongType
from dsched.state.versions import LONGEST_LAG

SILENT_AFTER_MS = 10_000
FORGOTTEN_AFTER_MS = 120_000
KINDS = ("evaluator", "binder")
MOST = 10_000
"""More than anybody runs: each is pinged every 2 s."""
LONGEST_NAME = 512


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker.

    Attributes:
        kind: evaluator or binder.
        config: hash of the configuration it has.
        cluster: what it takes to keep the objects: standalone or kubernetes.
        table: version of its replica of the node table, 0 where it has none (yet).
        trouble: why it refuses what the leader sends, empty where it does not.
    """

    name: str
    kind: str
    last_seen_ms: int
    config: str
    cluster: str = ""
    table: int = 0
    trouble: str = ""

    def behind(self, newest: int) -> int | None:
        """By how many versions its replica is behind the newest one; it catches up when it is asked for something. None
        without a replica, or with one of a table that is gone: it will take the whole table then."""
        behind = newest - self.table
        return behind if self.table and 0 <= behind < LONGEST_LAG else None

    def silent(self, now_ms: int) -> bool:
        """Whether it has not run a task for too long."""
        return now_ms - self.last_seen_ms > SILENT_AFTER_MS


def note(store: Store, worker: Worker) -> None:
    """The worker has just run a task (or has just started)."""
    store.redis.hset(store.key(keys.WORKERS.name), worker.name, _text(worker))


def add(store: Store, worker: Worker) -> bool:
    """Put a worker into the list that is not in it; says whether that was so."""
    return bool(store.redis.hsetnx(store.key(keys.WORKERS.name), worker.name, _text(worker)))


def leave(store: Store, name: str) -> None:
    """The worker has stopped."""
    store.redis.hdel(store.key(keys.WORKERS.name), name)


def read(store: Store) -> list[Worker]:
    """Every worker that has been seen lately, silent ones included; nothing else that may stand there."""
    return look(store)[0]


def look(store: Store) -> tuple[list[Worker], dict[bytes, bytes]]:
    """As `read`, and what no worker of ours wrote: names to texts. None of it where the key is of another type."""
    try:
        there = store.redis.hgetall(store.key(keys.WORKERS.name))
    except WrongType:
        return [], {}
    found = {name: _parsed(name, text) for name, text in there.items()}
    known = sorted((each for each in found.values() if each is not None), key=lambda worker: worker.name)
    kept = {worker.name.encode() for worker in known[:MOST]}
    return known[:MOST], {name: text for name, text in there.items() if name not in kept}


def drop(store: Store, names: Iterable[bytes]) -> None:
    """Forget what `look` found besides workers; one that lives notes itself anew."""
    store.redis.hdel(store.key(keys.WORKERS.name), *names)


def _parsed(name: bytes, text: bytes) -> Worker | None:
    try:
        kind, last_seen_ms, config, cluster, table, trouble = f"{text.decode()}     ".split(" ", 5)
        who = name.decode()
    except UnicodeDecodeError:
        return None
    if kind not in KINDS or not is_whole(last_seen_ms) or len(name) > LONGEST_NAME or not who.isprintable():
        return None
    known = whole(table)  # an older dsched does not say
    told = trouble if is_whole(table) else f"{table} {trouble}"
    return Worker(who, kind, whole(last_seen_ms), config, cluster, known, told.strip())


def _text(worker: Worker) -> str:
    return f"{worker.kind} {worker.last_seen_ms} {worker.config} {worker.cluster} {worker.table} {worker.trouble}"
