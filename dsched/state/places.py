"""How many pods stand in each place and which, for people: cheap however many are pending, changes nothing.

Counts are the sizes of the sets, as of one moment. Pods are read a page at a time in the order of their place, so a pod
that moves meanwhile may show twice or not at all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from dsched.errors import StateError
from dsched.model import raw
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.scheduler.ports import QueueName, group_of
from dsched.state import client, keys
from dsched.state.client import Store
from dsched.state.reservations import Reservation, parse

ALL = (
    QueueName.ACTIVE,
    QueueName.BACKOFF,
    QueueName.UNSCHEDULABLE,
    QueueName.GATED,
    QueueName.GROUP,
    QueueName.INFLIGHT,
    QueueName.WAITING,
    QueueName.RESERVED,
)
"""The places that can be asked for; reserved holds the pods that are being bound, too. A pod group counts as one pod
where it stands itself; its pods stand in group."""

PAGE = 1000
SORTED_AT_MOST = 10_000
"""So many pods in flight or reserved are put in order; of more, those read first come first."""

_ZSETS = {
    QueueName.ACTIVE: keys.ACTIVE,
    QueueName.BACKOFF: keys.BACKOFF,
    QueueName.UNSCHEDULABLE: keys.UNSCHEDULABLE,
    QueueName.GATED: keys.GATED,
    QueueName.WAITING: keys.WAITING,
    QueueName.GROUP: keys.GROUP,
}
_TIMED = (QueueName.BACKOFF, QueueName.WAITING)
_FIELDS = ("uid", "attempts", "queued_us", "first_ms", "last_ms", "node", "plugins", "message", "profile", "group")


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod, or a pod group, in a place; times in ms since the epoch, None where there is none.

    Attributes:
        key: of a pod group ``podgroup/namespace/name``.
        attempts: how often it was tried.
        queued_ms: when it was put into the queue last.
        first_ms, last_ms: its first and its latest attempt.
        until_ms: when its backoff ends, or when Permit's patience does.
        node: the node reserved for it, or where it is and waits for room; empty without one.
        state: of its reservation, ``reserved`` or ``binding``; else empty.
        epoch: under which it is in flight or reserved.
        plugins: those that rejected it last; message: what was said about it last.
        group: ``namespace/name`` of the pod group that it is scheduled with; empty without one.
    """

    key: PodKey
    place: QueueName
    uid: str = ""
    attempts: int = 0
    queued_ms: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    until_ms: int | None = None
    node: NodeName = NO_NODE
    state: str = ""
    epoch: int | None = None
    profile: str = ""
    plugins: tuple[str, ...] = ()
    message: str = ""
    group: str = ""

    @property
    def resizes(self) -> bool:
        """Whether it is on its node already, and waits there for the room that a resize needs."""
        return bool(self.node) and self.place not in (QueueName.RESERVED, QueueName.WAITING)


class Places:
    """The places of one system. Every method raises RedisUnavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def counts(self) -> dict[QueueName, int]:
        """How many pods stand in each place, of all namespaces, as of one moment."""
        with client.reachable(self._store):
            pipe: Any = self._store.redis.pipeline(transaction=True)
            for key in _ZSETS.values():
                pipe.zcard(self._store.key(key.name))
            pipe.hlen(self._store.key(keys.INFLIGHT.name))
            pipe.hlen(self._store.key(keys.RESERVATIONS.name))
            *sizes, inflight, reservations = pipe.execute()
        found = dict(zip(_ZSETS, sizes, strict=True))
        found[QueueName.INFLIGHT] = inflight
        found[QueueName.RESERVED] = max(0, reservations - found[QueueName.WAITING])
        return {place: found[place] for place in ALL}

    def pods(self, place: QueueName, limit: int = 0, namespace: str | None = None, skip: int = 0) -> Iterator[Placed]:
        """The pods in a place, in its order: active as they will be tried, backoff and waiting by when that ends,
        unschedulable and gated by since when, those beside pod groups by when they were queued, in flight by batch,
        reserved by since when.

        Args:
            limit: so many at most, 0 for all.
            namespace: only pods of this one; every page of the place is read until ``limit`` are found.
            skip: so many that stand first are passed over, of whichever namespace.

        Raises:
            StateError: what stands there cannot be read.
        """
        size = min(limit, PAGE) if limit and namespace is None else PAGE
        left = limit or -1
        for page in _pages(self._entries(place, size, skip), size):
            chosen = page if namespace is None else [entry for entry in page if _namespace(entry.key) == namespace]
            for placed in self._described(chosen if left < 0 else chosen[:left]):
                yield placed
                left -= 1
            if left == 0:
                return

    def _entries(self, place: QueueName, size: int, skip: int) -> Iterator[Placed]:
        if place in _ZSETS:
            return self._ranked(place, size, skip)
        return islice(self._reserved() if place is QueueName.RESERVED else self._inflight(), skip, None)

    def _ranked(self, place: QueueName, size: int, start: int) -> Iterator[Placed]:
        name = self._store.key(_ZSETS[place].name)
        while True:
            with client.reachable(self._store):
                page = self._store.redis.zrange(name, start, start + size - 1, withscores=True)
            for text, score in page:
                until_ms = raw.score(score) if place in _TIMED else None
                yield Placed(PodKey(raw.text(text).rpartition(" ")[2]), place, until_ms=until_ms)
            if len(page) < size:
                return
            start += size

    def _inflight(self) -> Iterator[Placed]:
        entries = ((raw.text(key), raw.text(text)) for key, text in self._scanned(keys.INFLIGHT))
        for _, key, epoch in _first_sorted(_in_flight(key, text) for key, text in entries):
            yield Placed(PodKey(key), QueueName.INFLIGHT, epoch=epoch)

    def _reserved(self) -> Iterator[Placed]:
        parsed = (parse(PodUid(raw.text(uid)), raw.text(text)) for uid, text in self._scanned(keys.RESERVATIONS))
        ordered = _first_sorted((each.since_ms, each.key, each) for each in parsed if each.state != QueueName.WAITING)
        for _, _, each in ordered:
            yield _of_reservation(each)

    def _scanned(self, key: keys.Key) -> Iterator[tuple[bytes, bytes]]:
        with client.reachable(self._store):
            yield from self._store.redis.hscan_iter(self._store.key(key.name), count=PAGE)

    def _described(self, entries: list[Placed]) -> Iterator[Placed]:
        with client.reachable(self._store):
            pipe: Any = self._store.redis.pipeline(transaction=False)
            for entry in entries:
                pipe.hmget(self._store.key(keys.POD.name + entry.key), _FIELDS)
            records = pipe.execute() if entries else []
        for entry, values in zip(entries, records, strict=True):
            fields = {
                name: value.decode(errors="replace") for name, value in zip(_FIELDS, values, strict=True) if value
            }
            yield _with_record(entry, fields)


def _pages(entries: Iterable[Placed], size: int) -> Iterator[list[Placed]]:
    page: list[Placed] = []
    for entry in entries:
        page.append(entry)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def _namespace(key: str) -> str:
    return (group_of(key) or key).partition("/")[0]


def _first_sorted(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    rows = iter(rows)
    return chain(sorted(islice(rows, SORTED_AT_MOST), key=lambda row: row[:2]), rows)


def _in_flight(key: str, text: str) -> tuple[tuple[int, int], str, int]:
    """Epoch and number of the batch, key, epoch; from ``EPOCH BATCH`` where a batch is called ``EPOCH-NUMBER``."""
    epoch, _, batch = text.partition(" ")
    number = batch.rpartition("-")[2]
    if not raw.is_whole(epoch):
        raise StateError(f"pod {key} in flight: {text!r} is not 'EPOCH BATCH'; dsched fsck lists what is wrong")
    return (int(epoch), raw.whole(number)), key, int(epoch)


def _of_reservation(found: Reservation) -> Placed:
    return Placed(found.key, QueueName.RESERVED, uid=found.uid, node=found.node, state=found.state, epoch=found.epoch)


def _with_record(entry: Placed, fields: dict[str, str]) -> Placed:
    return replace(
        entry,
        uid=entry.uid or fields.get("uid", ""),
        attempts=raw.whole(fields.get("attempts")),
        queued_ms=raw.whole(fields["queued_us"]) // 1000 if "queued_us" in fields else None,
        first_ms=raw.whole(fields["first_ms"]) if "first_ms" in fields else None,
        last_ms=raw.whole(fields["last_ms"]) if "last_ms" in fields else None,
        node=entry.node or NodeName(fields.get("node", "")),
        profile=fields.get("profile", ""),
        plugins=tuple(fields.get("plugins", "").split()),
        message=fields.get("message", ""),
        group=fields.get("group", ""),
    )
