"""Sending batches of new and changed objects to Redis, each of which is written whole or not at all."""

import uuid
from collections.abc import Sequence

from dsched.cluster.standalone import keys, stored
from dsched.manifests import kinds
from dsched.state import client
from dsched.state import keys as state_keys
from dsched.state.client import Store
from dsched.state.pieces import Packed
from dsched.state.scripts import Script

_PODS_KEYS = state_keys.names(
    keys.ID, keys.VERSION, keys.LOG, keys.objects(kinds.POD), keys.STATE, keys.STATUS, keys.EVENTS
)


class Putter:
    """Writes batches, packed as the scripts ``pods_put`` and ``objects_put`` take them.

    Every method raises RedisUnavailable while Redis does not answer.

    Args:
        store: on a line, `begin` does not wait for Redis.
        log_length: about how many changes a watcher may be behind.
    """

    def __init__(self, store: Store, log_length: int) -> None:
        self._store = store
        self._log_length = log_length
        self._pods = Script(store, "pods_put", stored.SCRIPTS)
        self._objects = Script(store, "objects_put", stored.SCRIPTS)
        self._changed: Sequence[bytes] = ()

    def put(self, kind: kinds.Kind, packed: Packed) -> set[str]:
        """Write a batch; returns the keys of its objects that have changed: then nothing of it was written."""
        self.begin(kind, packed)
        return self.changed()

    def begin(self, kind: kinds.Kind, packed: Packed) -> None:
        """Have a batch written; `changed` is to be called before the next one."""
        fresh, head = str(uuid.uuid4()), stored.head(kind)
        with client.reachable(self._store):
            if kind is kinds.POD:
                self._pods.ahead(_PODS_KEYS, [fresh, self._log_length, head, packed], self._take)
            else:
                names = state_keys.names(keys.ID, keys.VERSION, keys.LOG, keys.objects(kind))
                self._objects.ahead(names, [fresh, self._log_length, kind.name, head, packed], self._take)

    def changed(self) -> set[str]:
        """Wait for the batch that was begun; returns as `put`."""
        with client.reachable(self._store):
            self._store.settle()
        return {key.decode() for key in self._changed}

    def _take(self, changed: Sequence[bytes]) -> None:
        self._changed = changed
