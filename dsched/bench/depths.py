"""How many pods stand in each place of the queue, looked at now and then."""

import threading
import time
from typing import Any

from dsched.errors import RedisUnavailable
from dsched.state import client, keys
from dsched.state.client import Store

EVERY_S = 0.25
_SETS = (keys.ACTIVE, keys.BACKOFF, keys.UNSCHEDULABLE, keys.GATED, keys.WAITING)
_HASHES = (keys.INFLIGHT, keys.RESERVATIONS)
PLACES = tuple(key.name.removeprefix("queue:") for key in (*_SETS, *_HASHES))


def look(store: Store) -> dict[str, int]:
    """Pods by place."""
    with client.reachable(store):
        pipe: Any = store.redis.pipeline(transaction=False)
        for key in _SETS:
            pipe.zcard(store.key(key.name))
        for key in _HASHES:
            pipe.hlen(store.key(key.name))
        return dict(zip(PLACES, pipe.execute(), strict=True))


class Sampler:
    """Looks in a thread of its own.

    Attributes:
        seen: (monotonic time, pods by place).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="depths", daemon=True)
        self.seen: list[tuple[float, dict[str, int]]] = []

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def fullest(self) -> dict[str, int]:
        """The most pods seen in each place."""
        return {place: max((depths[place] for _, depths in self.seen), default=0) for place in PLACES}

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            try:
                self.seen.append((time.monotonic(), look(self._store)))
            except RedisUnavailable:
                return  # whoever waits for pods meets the same error and tells it
