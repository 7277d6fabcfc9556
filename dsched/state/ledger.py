"""What Redis keeps of the queue, the reservations and the nodes' usage, read in pieces while the system runs.

For whoever compares it with what he believes. Nothing is changed; no epoch is needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dsched.model import raw
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import QueueName
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.pieces import AT_MOST

PIECE = 250
_ZSETS: Mapping[str, str] = {
    QueueName.ACTIVE: keys.ACTIVE.name,
    QueueName.BACKOFF: keys.BACKOFF.name,
    QueueName.UNSCHEDULABLE: keys.UNSCHEDULABLE.name,
    QueueName.GATED: keys.GATED.name,
    QueueName.WAITING: keys.WAITING.name,
    QueueName.GROUP: keys.GROUP.name,
}


class Entry(NamedTuple):
    """A pod's record.

    Attributes:
        queue: the place that it names.
        listed: whether the pod is a member there; True where a place has no members.
    """

    key: PodKey
    uid: PodUid
    queue: str
    listed: bool


def entries(store: Store) -> Iterator[list[Entry]]:
    """Every pod's record, in pieces; one may come twice while others are written."""
    prefix = store.key(keys.POD.name)
    cursor = 0
    while True:
        cursor, names = store.redis.scan(cursor, match=_literal(prefix) + "*", count=PIECE)
        yield _entries(store, [PodKey(raw.text(name)[len(prefix) :]) for name in names])
        if cursor == 0:
            return


def entry(store: Store, key: PodKey) -> Entry | None:
    """A pod's record, None where there is none."""
    found = _entries(store, [key])
    return found[0] if found else None


def _entries(store: Store, names: Sequence[PodKey]) -> list[Entry]:
    with store.redis.pipeline(transaction=False) as pipeline:
        for key in names:
            pipeline.hmget(store.key(keys.POD.name + key), "uid", "queue", "place")
        rows = [[raw.text(cell) for cell in row] for row in pipeline.execute()]
        for key, (_, queue, turn) in zip(names, rows, strict=True):
            member = f"{turn} {key}" if queue in (QueueName.ACTIVE, QueueName.GROUP) else key
            pipeline.zscore(store.key(_ZSETS.get(queue, keys.ACTIVE.name)), member)
        scores = pipeline.execute()
    return [
        Entry(key, PodUid(uid), queue, score is not None or queue not in _ZSETS)
        for key, (uid, queue, _), score in zip(names, rows, scores, strict=True)
        if uid
    ]


def reservations(store: Store) -> Mapping[PodUid, str]:
    """Every reservation: a pod's uid to its text, see `dsched.state.reservations.parse`."""
    found = store.redis.hscan_iter(store.key(keys.RESERVATIONS.name), count=AT_MOST)
    return {PodUid(raw.text(uid)): raw.text(text) for uid, text in found}


def usage(
    store: Store, names: Callable[[], Sequence[NodeName]], key: keys.Key = keys.NODE
) -> Iterator[dict[NodeName, dict[str, str]]]:
    """The fields of ``node:NAME`` of these nodes, or of ``quota:NAME`` of queues, in pieces; empty for one that is not
    there."""
    wanted = names()
    for start in range(0, len(wanted), PIECE):
        piece = wanted[start : start + PIECE]
        with store.redis.pipeline(transaction=False) as pipeline:
            for name in piece:
                pipeline.hgetall(store.key(key.name + name))
            rows = pipeline.execute()
        yield {
            name: {raw.text(field): raw.text(value) for field, value in fields.items()}
            for name, fields in zip(piece, rows, strict=True)
        }


def _literal(text: str) -> str:
    return "".join(f"\\{character}" if character in "*?[]\\" else character for character in text)
