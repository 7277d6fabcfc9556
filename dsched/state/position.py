"""Where one pod, or pod group, stands and how many stand before it; for people, changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsched.errors import StateError
from dsched.model import raw
from dsched.model.meta import PodKey
from dsched.scheduler.ports import QueueName, entity_key, group_of
from dsched.state import client, keys
from dsched.state.client import Store

_ZSETS = {
    QueueName.BACKOFF: keys.BACKOFF,
    QueueName.UNSCHEDULABLE: keys.UNSCHEDULABLE,
    QueueName.GATED: keys.GATED,
    QueueName.GROUP: keys.GROUP,
}
_LOOKS = 20
"""A pod that moves between the two parts of a look is looked at again, so many times."""


@dataclass(frozen=True, slots=True)
class Position:
    """
    Attributes:
        before: how many stand before it: for an active pod in the active queue; for one in backoff, the active pods and
            those whose pause ends earlier. None where there is no order in which pods are tried.
        pods: how many stand in its place; None where that is not the queue's to say (in flight, reserved, waiting).
        until_ms: when its backoff ends.
        group: the pod group that it is scheduled with, ``namespace/name``; empty without one.
        entity: where that stands, of a pod that stands beside it; None where it does not stand in the queue.
    """

    key: PodKey
    place: QueueName
    attempts: int
    profile: str
    before: int | None = None
    pods: int | None = None
    until_ms: int | None = None
    plugins: tuple[str, ...] = ()
    message: str = ""
    group: str = ""
    entity: "Position | None" = None


def find(store: Store, key: PodKey) -> Position | None:
    """Where a pod stands as of one moment, None when it is not pending.

    Raises:
        RedisUnavailable: Redis does not answer.
        StateError: the pod moves faster than it can be looked at, or its record is not like its place.
    """
    record = store.key(keys.POD.name + key)
    for _ in range(_LOOKS):
        with client.reachable(store):
            turn, place_text = store.redis.hmget(record, "place", "queue")
            if place_text is None:
                return None
            if raw.text(place_text) not in set(QueueName):
                break
            place = QueueName(raw.text(place_text))
            pipe: Any = store.redis.pipeline(transaction=True)
            pipe.hgetall(record)
            pipe.zrank(store.key(keys.ACTIVE.name), f"{raw.text(turn)} {key}")
            pipe.zcard(store.key(keys.ACTIVE.name))
            ranked = store.key(_ZSETS.get(place, keys.BACKOFF).name)
            member = f"{raw.text(turn)} {key}" if place is QueueName.GROUP else key
            pipe.zrank(ranked, member)
            pipe.zcard(ranked)
            pipe.zscore(ranked, member)
            record_now, rank, active, place_rank, size, score = pipe.execute()
        fields: Any = {raw.text(name): raw.text(value) for name, value in record_now.items()}
        expected = rank if place is QueueName.ACTIVE else place_rank if place in _ZSETS else 0
        if fields.get("queue") == place and expected is not None:
            found = _position(key, place, fields)
            if place is QueueName.ACTIVE:
                return replace(found, before=rank, pods=active)
            if place is QueueName.BACKOFF:
                return replace(found, before=active + place_rank, pods=size, until_ms=raw.score(score))
            if place is QueueName.GROUP and not group_of(key):
                found = replace(found, entity=find(store, entity_key(found.group)))
            return replace(found, pods=size if place in _ZSETS else None)
    raise StateError(f"pod {key} does not stand where its record says; dsched fsck lists what is wrong")


def _position(key: PodKey, place: QueueName, fields: Mapping[str, str]) -> Position:
    """What its record says."""
    return Position(
        key,
        place,
        raw.whole(fields.get("attempts")),
        fields.get("profile", ""),
        plugins=tuple(fields.get("plugins", "").split()),
        message=fields.get("message", ""),
        group=fields.get("group", ""),
    )
