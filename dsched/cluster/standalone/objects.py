"""Reading objects as they stand: whole kinds, single ones, and the events of a pod."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from dsched.cluster import sound
from dsched.cluster.standalone import keys, stored
from dsched.cluster.standalone.stored import Object
from dsched.errors import ClusterError
from dsched.log import logger
from dsched.manifests import kinds
from dsched.model.meta import PodKey, from_json
from dsched.model.node import Node
from dsched.model.pod import FAILED, SUCCEEDED, Pod
from dsched.state import client, pieces
from dsched.state import keys as state_keys
from dsched.state.client import Store
from dsched.state.scripts import Script
from dsched.state.walk import Walk

_log = logger(__name__)

Read = TypeVar("Read")
LeftOut = Callable[[str, bytes, Exception], None]
"""Is told of an object that cannot be read: its kind, its key, and why."""

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

    def all_of(self, kind: kinds.Kind, namespace: str | None = None, left_out: LeftOut | None = None) -> list[Object]:
        """All objects of a kind (in a namespace) as plain objects, by key, without those that cannot be read.

        Args:
            left_out: is told of those, instead of the log.
        """
        begins = f"{namespace}/".encode() if namespace is not None and kind.namespaced else b""
        found: dict[bytes, Object] = {}
        if kind is kinds.POD:
            for key, raw in self.scan_pods():
                shown = readable(kind.name, key, _shown, *raw, left_out=left_out) if key.startswith(begins) else None
                if shown is not None:
                    found[key] = shown
        else:
            for key, json in self.scan(kind):
                if not key.startswith(begins):
                    continue
                value = readable(kind.name, key, read_object, kind, json, left_out=left_out)
                if value is not None:
                    found[key] = dict(value)
        return [found[key] for key in sorted(found)]

    def pods(self, left_out: LeftOut | None = None) -> Iterator[Pod]:
        """All pods that can be read, in no order; one may come twice."""
        return (found for _, found in self.read_pods(left_out))

    def read_pods(self, left_out: LeftOut | None = None) -> Iterator[tuple[RawPod, Pod]]:
        """All pods that can be read, each beside what is kept of it, in no order; one may come twice."""
        return sound.attempts(read_pod, self.scan_pods(), left_out or _tell, "Pod")

    def waiting_pods(self, left_out: LeftOut | None = None) -> Iterator[Pod]:
        """All pods that have no node and have not ended, as far as they can be read, in no order; one may come twice.
        Of the others only their state lines are read; a pod whose state line is none is passed over."""
        for states in self.scan_states():
            keys = [key for key, state in states if not state.bound_to and state.phase not in (SUCCEEDED, FAILED)]
            for key, raw in zip(keys, self.get_pods(keys), strict=True):
                found = None if raw is None else readable("Pod", key.encode(), read_pod, *raw, left_out=left_out)
                if found is not None:
                    yield found

    def get(self, kind: kinds.Kind, wanted: Sequence[str]) -> list[Object | None]:
        """The objects with these keys; None for one that is not there.

        Raises:
            ClusterError: one cannot be read.
        """
        if kind is kinds.POD:
            pods = zip(wanted, self.get_pods(wanted), strict=True)
            return [_sound(kind, key, _shown, *raw) if raw else None for key, raw in pods]
        jsons = zip(wanted, self.get_json(kind, wanted), strict=True)
        return [dict(_sound(kind, key, read_object, kind, json)) if json else None for key, json in jsons]

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

        def ask(lined: Store, cursor: bytes, then: Callable[[Any], None]) -> None:
            Script(lined, "pods_scan", stored.SCRIPTS).ahead(_POD_KEYS, [cursor, pieces.LIGHT_AT_MOST], then)

        return iter(Walk(self._store, ask, _rows))

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


def _rows(reply: Sequence[Any]) -> list[tuple[bytes, RawPod]]:
    """What pods_scan returns, pod by pod."""
    _, found, states, statuses = reply
    return list(zip(found[::2], zip(found[1::2], states, statuses, strict=True), strict=True))


def _states(found: Mapping[bytes, bytes]) -> Iterator[tuple[str, stored.PodState]]:
    """The state lines that can be read; who reads the pod tells of the others."""
    for key, line in found.items():
        with contextlib.suppress(ValueError):
            yield key.decode(), stored.pod_state(line)


def _event(line: str) -> StoredEvent:
    kind, reason, count, first_ms, last_ms, message = line.split(" ", 5)
    return StoredEvent(kind, reason, int(count), int(first_ms), int(last_ms), message)


def read_object(kind: kinds.Kind, json: bytes) -> Mapping[str, Any]:
    """A stored object that is no pod, plain.

    Raises:
        Exception: whatever `sound` and the decoder raise; ValueError: it is none of that kind that was applied.
    """
    value: Object = msgspec.json.decode(json)
    if kind is kinds.NODE:
        read_node(json)
        return value
    found = sound.other(kind, value, json)
    sound.version(str(found["metadata"].get("resourceVersion")))
    if not found["metadata"].get("uid"):
        raise ValueError("it has no metadata.uid")
    return found


def read_node(json: bytes) -> Node:
    """A stored node.

    Raises:
        Exception: whatever `sound.node` and the decoder raise.
    """
    found = sound.node(from_json(json, Node))
    sound.version(found.metadata.resource_version)
    return found


def read_pod(raw: bytes, line: bytes, status: bytes | None) -> Pod:
    """A stored pod as it is now.

    Raises:
        Exception: whatever `sound.pod` and the decoder raise.
    """
    found = sound.pod(stored.pod(raw, line, status))
    sound.version(found.metadata.resource_version)
    return found


def _shown(raw: bytes, line: bytes, status: bytes | None) -> Object:
    read_pod(raw, line, status)
    return stored.shown(raw, line, status)


def readable(
    kind: str, key: bytes, read: Callable[..., Read], *raw: Any, left_out: LeftOut | None = None
) -> Read | None:
    """What can be read; what cannot was not written by dsched, and is left out so that the rest goes on.

    Args:
        left_out: is told why, instead of the log.
    """
    return sound.attempt(read, raw, left_out or _tell, kind, key)


def _sound(kind: kinds.Kind, key: str, read: Callable[..., Read], *raw: Any) -> Read:
    """What is read of an object that was asked for by name.

    Raises:
        ClusterError: it cannot be read.
    """
    why: list[Exception] = []
    found = sound.attempt(read, raw, why.append)
    if found is None:
        told = f"{kind.singular} {key} cannot be read: {why[0]}"
        raise ClusterError(f"{told}; 'dsched delete {kind.singular}' takes it away") from why[0]
    return found


def _tell(kind: str, key: bytes, error: Exception) -> None:
    from dsched.metrics import WATCH_UNREADABLE  # commands that only look something up do without

    WATCH_UNREADABLE.labels(kind).inc()
    extra = {"action": "decode", "kind": kind, "key": key.decode(errors="replace"), "error": repr(error)}
    _log.error("object cannot be read, left out", extra=extra)
