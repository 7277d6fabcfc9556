"""Which workers take tasks: each notes it itself, in a task that ran there, so that a worker which is alive but takes
nothing shows as silent."""

from dataclasses import dataclass

from dsched.state import keys
from dsched.state.client import Store

SILENT_AFTER_MS = 10_000
FORGOTTEN_AFTER_MS = 120_000


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker; ``kind`` is evaluator or binder."""

    name: str
    kind: str
    last_seen_ms: int
    config: str

    def silent(self, now_ms: int) -> bool:
        """Whether it has not run a task for too long."""
        return now_ms - self.last_seen_ms > SILENT_AFTER_MS


def note(store: Store, worker: Worker) -> None:
    """The worker has just run a task (or has just started)."""
    text = f"{worker.kind} {worker.last_seen_ms} {worker.config}"
    store.redis.hset(store.key(keys.WORKERS.name), worker.name, text)


def leave(store: Store, name: str) -> None:
    """The worker has stopped."""
    store.redis.hdel(store.key(keys.WORKERS.name), name)


def read(store: Store) -> list[Worker]:
    """Every worker that has been seen lately, silent ones included."""
    found: list[Worker] = []
    for name, text in store.redis.hgetall(store.key(keys.WORKERS.name)).items():
        kind, last_seen_ms, config = text.decode().split(" ")
        found.append(Worker(name.decode(), kind, int(last_seen_ms), config))
    return sorted(found, key=lambda worker: worker.name)
