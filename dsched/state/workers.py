"""Which workers take tasks: each notes it itself, in a task that ran there, so that a worker which is alive but takes
nothing shows as silent."""

from dataclasses import dataclass

from dsched.state import keys
from dsched.state.client import Store
from dsched.state.versions import LONGEST_LAG

SILENT_AFTER_MS = 10_000
FORGOTTEN_AFTER_MS = 120_000


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
    """Every worker that has been seen lately, silent ones included."""
    found: list[Worker] = []
    for name, text in store.redis.hgetall(store.key(keys.WORKERS.name)).items():
        kind, last_seen_ms, config, cluster, table, trouble = f"{text.decode()}     ".split(" ", 5)
        known = int(table) if table.isdigit() else 0  # an older dsched does not say
        told = trouble if table.isdigit() else f"{table} {trouble}"
        found.append(Worker(name.decode(), kind, int(last_seen_ms), config, cluster, known, told.strip()))
    return sorted(found, key=lambda worker: worker.name)


def _text(worker: Worker) -> str:
    return f"{worker.kind} {worker.last_seen_ms} {worker.config} {worker.cluster} {worker.table} {worker.trouble}"
