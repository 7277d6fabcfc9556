"""Where one pod stands and how many stand before it; for people, changes nothing."""

from dataclasses import dataclass
from typing import Any

from dsched.errors import StateError
from dsched.model import raw
from dsched.model.meta import PodKey
from dsched.scheduler.ports import QueueName
from dsched.state import client, keys
from dsched.state.client import Store

_ZSETS = {QueueName.BACKOFF: keys.BACKOFF, QueueName.UNSCHEDULABLE: keys.UNSCHEDULABLE, QueueName.GATED: keys.GATED}
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
            pipe.zrank(ranked, key)
            pipe.zcard(ranked)
            pipe.zscore(ranked, key)
            record_now, rank, active, place_rank, size, score = pipe.execute()
        fields: Any = {raw.text(name): raw.text(value) for name, value in record_now.items()}
        expected = rank if place is QueueName.ACTIVE else place_rank if place in _ZSETS else 0
        if fields.get("queue") == place and expected is not None:
            known = (key, place, raw.whole(fields.get("attempts")), fields.get("profile", ""))
            said = {"plugins": tuple(fields.get("plugins", "").split()), "message": fields.get("message", "")}
            if place is QueueName.ACTIVE:
                return Position(*known, rank, active, **said)
            if place is QueueName.BACKOFF:
                return Position(*known, active + place_rank, size, raw.score(score), **said)
            return Position(*known, None, size if place in _ZSETS else None, **said)
    raise StateError(f"pod {key} does not stand where its record says; dsched fsck lists what is wrong")
