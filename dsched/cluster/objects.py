"""Reading objects as they stand: whole kinds, single ones, and the events of a pod."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dsched.cluster import keys, stored
from dsched.cluster.stored import Object
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from dsched.state import client, pieces
from dsched.state import keys as state_keys
from dsched.state.client import Store
from dsched.state.scripts import Script

_POD_KEYS = state_keys.names(keys.objects(kinds.POD), keys.STATE, keys.STATUS)

RawPod = tuple[bytes, bytes, bytes | None]
"""A pod's JSON, its state line, and what the scheduler wrote about it."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a pod as kept; times in ms since the epoch."""

    type: str
    reason: str
    count: int
    first_ms: int
    last_ms: int
    message: str


class Objects:
    """The objects of one cluster, read only. Every method raises RedisUnavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._scan_pods = Script(store, "pods_scan", stored.SCRIPTS)

    def all_of(self, kind: kinds.Kind, namespace: str | None = None) -> list[Object]:
        """All objects of a kind (in a namespace) as plain objects, by key."""
        begins = f"{namespace}/".encode() if namespace is not None and kind.namespaced else b""
        found: dict[bytes, Object] = {}
        if kind is kinds.POD:
            for key, raw in self.scan_pods():
                if key.startswith(begins):
                    found[key] = stored.shown(*raw)
        else:
            for key, json in self.scan(kind):
                if key.startswith(begins):
                    found[key] = msgspec.json.decode(json)
        return [found[key] for key in sorted(found)]

    def get(self, kind: kinds.Kind, wanted: Sequence[str]) -> list[Object | None]:
        """The objects with these keys; None for one that is not there."""
        if kind is kinds.POD:
            return [stored.shown(*raw) if raw else None for raw in self.get_pods(wanted)]
        return [msgspec.json.decode(json) if json else None for json in self.get_json(kind, wanted)]

    def get_json(self, kind: kinds.Kind, wanted: Sequence[str]) -> list[bytes | None]:
        """The objects' JSON as applied."""
        if not wanted:
            return []
        with client.reachable(self._store):
            found: list[bytes | None] = self._store.redis.hmget(self._store.key(keys.objects(kind).name), wanted)
            return found

    def get_pods(self, wanted: Sequence[str | bytes]) -> list[RawPod | None]:
        """The pods with these keys; None for one that is not there."""
        found: list[RawPod | None] = []
        for batch in pieces.cut(wanted):
            with client.reachable(self._store):
                pipe: Any = self._store.redis.pipeline(transaction=True)
                for name in _POD_KEYS:
                    pipe.hmget(self._store.key(name), batch)
                rows = zip(*pipe.execute(), strict=True)
            found += [(raw, line, status) if raw and line else None for raw, line, status in rows]
        return found

    def scan(self, kind: kinds.Kind) -> Iterator[tuple[bytes, bytes]]:
        """Key and JSON of every object of a kind, in no order; one may come twice while others are written."""
        name = self._store.key(keys.objects(kind).name)
        cursor = 0
        while True:
            with client.reachable(self._store):
                cursor, found = self._store.redis.hscan(name, cursor, count=pieces.LIGHT_AT_MOST)
            yield from found.items()
            if cursor == 0:
                return

    def scan_pods(self) -> Iterator[tuple[bytes, RawPod]]:
        """Key and everything that is kept of every pod, in no order; one may come twice."""
        cursor: bytes | int = 0
        while True:
            with client.reachable(self._store):
                cursor, *columns = self._scan_pods(_POD_KEYS, [cursor, pieces.LIGHT_AT_MOST])
            for key, raw, line, status in zip(*columns, strict=True):
                yield key, (raw, line, status)
            if int(cursor) == 0:
                return

    def scan_states(self) -> Iterator[list[tuple[str, stored.PodState]]]:
        """Key and state line of every pod, in pieces, in no order; one may come twice."""
        cursor = 0
        while True:
            with client.reachable(self._store):
                cursor, found = self._store.redis.hscan(
                    self._store.key(keys.STATE.name), cursor, count=pieces.LIGHT_AT_MOST
                )
            yield list(_states(found))
            if cursor == 0:
                return

    def events(self, key: PodKey) -> list[StoredEvent]:
        """The events of a pod, newest first."""
        with client.reachable(self._store):
            lines = self._store.redis.lrange(self._store.key(keys.EVENTS.name + key), 0, -1)
        return [_event(line.decode()) for line in lines]


def _states(found: Mapping[bytes, bytes]) -> Iterator[tuple[str, stored.PodState]]:
    """The state lines that can be read; who reads the pod tells of the others."""
    for key, line in found.items():
        with contextlib.suppress(ValueError):
            yield key.decode(), stored.pod_state(line)


def _event(line: str) -> StoredEvent:
    kind, reason, count, first_ms, last_ms, message = line.split(" ", 5)
    return StoredEvent(kind, reason, int(count), int(first_ms), int(last_ms), message)
