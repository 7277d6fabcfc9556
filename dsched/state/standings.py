"""Everything that says where pods stand, read without an epoch: all of it, or some pods as of one moment.

Nothing is interpreted here: what contradicts itself is handed on as it is, for `dsched.fsck` to judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsched.model import raw
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.quantity import saturated
from dsched.scheduler.ports import QueueName
from dsched.state import client, keys
from dsched.state import lease as leases
from dsched.state.client import Store
from dsched.state.pieces import packed
from dsched.state.queue import read_records
from dsched.state.scripts import Script
from dsched.state.usage import read_names

SCANNED_AT_ONCE = 1000
LOOKED_AT_ONCE = 200

_ZSETS = (
    (QueueName.ACTIVE, keys.ACTIVE),
    (QueueName.BACKOFF, keys.BACKOFF),
    (QueueName.UNSCHEDULABLE, keys.UNSCHEDULABLE),
    (QueueName.GATED, keys.GATED),
    (QueueName.WAITING, keys.WAITING),
    (QueueName.GROUP, keys.GROUP),
)
_LOOK_KEYS = keys.names(*keys.QUEUES, keys.RESERVATIONS)


@dataclass(frozen=True, slots=True)
class Member:
    """A pod's entry in one of the sorted sets; ``score`` is a time in ms, in the active queue the order number, beside
    a pod group a time in microseconds."""

    place: QueueName
    text: str
    score: int


@dataclass(slots=True)
class Standing:
    """What is kept of one pod's place.

    Attributes:
        record: fields of its record, empty where it has none.
        members: its entries in the sorted sets, by place and text.
        inflight: its entry ``EPOCH BATCH`` among the pods in flight, empty where it has none.
    """

    record: Mapping[str, str] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    inflight: str = ""


@dataclass(frozen=True, slots=True)
class Standings:
    """Pods' places, and the reservations' texts by pod uid.

    Attributes:
        epoch: the present one, read with the last or after all.
    """

    pods: Mapping[PodKey, Standing]
    reservations: Mapping[PodUid, str]
    epoch: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A pod to look at, with what it may have besides what its record names."""

    key: PodKey
    turns: Sequence[str] = ()
    uids: Sequence[PodUid] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """Who leads, and how far the leader is, at one moment.

    Attributes:
        leader: identity; empty while nobody leads.
        lease_epoch: the epoch that the lease names, 0 while nobody leads.
        intake: up to which version of the cluster everything is taken in, -1 before the first leader.
        schedulers: the names that pods of this system ask for; None where the leader has not said.
        active, inflight: pods in the active queue and in flight.
    """

    leader: str
    lease_epoch: int
    epoch: int
    intake: int
    schedulers: frozenset[str] | None
    active: int
    inflight: int

    @property
    def idle(self) -> bool:
        """Whether there is no pod to be decided."""
        return self.active == 0 and self.inflight == 0


def moment(store: Store) -> Moment:
    """Who leads and how far everything is.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        pipe: Any = store.redis.pipeline(transaction=True)
        pipe.get(store.key(keys.LEADER.name))
        pipe.get(store.key(keys.EPOCH.name))
        pipe.hgetall(store.key(keys.INTAKE.name))
        pipe.zcard(store.key(keys.ACTIVE.name))
        pipe.hlen(store.key(keys.INFLIGHT.name))
        lease, epoch, intake, active, inflight = pipe.execute()
    identity, lease_epoch = leases.parse(lease) or ("", 0)
    schedulers = intake.get(b"schedulers")
    return Moment(
        leader=identity,
        lease_epoch=lease_epoch,
        epoch=raw.whole(epoch),
        intake=raw.whole(intake.get(b"version"), -1),
        schedulers=None if schedulers is None else frozenset(raw.text(schedulers).split()),
        active=active,
        inflight=inflight,
    )


def cluster(store: Store) -> str:
    """What keeps the objects that the leader schedules, as it said last; ``""`` before any leader led.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        found: bytes | None = store.redis.hget(store.key(keys.INTAKE.name), "cluster")
    return raw.text(found)


def read_held(store: Store) -> dict[PodUid, str]:
    """The text of every reservation, by pod uid; one given back meanwhile may be among them."""
    found = _scanned(store, keys.RESERVATIONS)
    return {PodUid(raw.text(uid)): raw.text(text) for uid, text in found.items()}


def read_standings(store: Store) -> dict[PodKey, Standing]:
    """The place of every pod and pod group that has one. It is read in pieces: a pod that moves meanwhile may seem to
    stand in two places, or in none."""
    found: dict[PodKey, Standing] = {}
    for member in _members(store):
        found.setdefault(PodKey(member.text.rpartition(" ")[2]), Standing()).members.append(member)
    for key, entry in _scanned(store, keys.INFLIGHT).items():
        found.setdefault(PodKey(raw.text(key)), Standing()).inflight = raw.text(entry)
    with client.reachable(store):
        for record in read_records(store):
            found.setdefault(record.key, Standing()).record = record.fields
    return found


def read_node_usage(
    store: Store, wanted: Sequence[NodeName] | None = None, key: keys.Key = keys.NODE
) -> dict[NodeName, dict[str, str]]:
    """Fields of ``node:NAME`` of these nodes, or of all; those that have none are left out.

    Args:
        key: under which nodes are written, or queues, which are written the same way.
    """
    found: dict[NodeName, dict[str, str]] = {}
    with client.reachable(store):
        names = list(read_names(store, key)) if wanted is None else list(wanted)
        for start in range(0, len(names), SCANNED_AT_ONCE):
            batch = names[start : start + SCANNED_AT_ONCE]
            pipe: Any = store.redis.pipeline(transaction=False)
            for name in batch:
                pipe.hgetall(store.key(key.name + name))
            for name, fields in zip(batch, pipe.execute(), strict=True):
                if fields:
                    found[name] = {raw.text(each): raw.text(value) for each, value in fields.items()}
    return found


def amounts(fields: Mapping[str, str], beginning: str) -> dict[str, int]:
    """Amounts by resource of such a record: those that begin so, ``used.`` or ``allocatable.``; sums end
    at 2^63-1."""
    return {
        name.removeprefix(beginning): saturated(raw.amount(text))
        for name, text in fields.items()
        if name.startswith(beginning)
    }


class Lookout:
    """Looks at some pods: each with its record, its entries and its reservation as of one moment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._look = Script(store, "queue_look")

    def look(self, wanted: Sequence[Asked]) -> Standings | None:
        """The places of these pods; None when none is asked for.

        Raises:
            RedisUnavailable: Redis does not answer.
        """
        pods: dict[PodKey, Standing] = {}
        reservations: dict[PodUid, str] = {}
        epoch = None
        for start in range(0, len(wanted), LOOKED_AT_ONCE):
            batch = wanted[start : start + LOOKED_AT_ONCE]
            asked = packed([[each.key, list(each.turns), list(each.uids)] for each in batch])
            with client.reachable(self._store):
                present, *replies = self._look(_LOOK_KEYS, [asked])
            epoch = raw.whole(present)
            for each, (fields, inflight, members, held) in zip(batch, replies, strict=True):
                pods[each.key] = Standing(_pairs(fields), _scored(members), raw.text(inflight or b""))
                reservations.update({PodUid(uid): text for uid, text in _pairs(held).items()})
        return None if epoch is None else Standings(pods, reservations, epoch)


def _members(store: Store) -> list[Member]:
    return [Member(place, text, score) for place, key in _ZSETS for text, score in _ranked(store, key).items()]


def _ranked(store: Store, key: keys.Key) -> dict[str, int]:
    with client.reachable(store):
        found = store.redis.zscan_iter(store.key(key.name), count=SCANNED_AT_ONCE)
        return {raw.text(text): raw.score(score) for text, score in found}


def _scanned(store: Store, key: keys.Key) -> dict[bytes, bytes]:
    with client.reachable(store):
        return dict(store.redis.hscan_iter(store.key(key.name), count=SCANNED_AT_ONCE))


def _pairs(flat: Sequence[bytes]) -> dict[str, str]:
    return {raw.text(name): raw.text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _scored(flat: Sequence[bytes]) -> list[Member]:
    rows = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    return [Member(QueueName(place.decode()), raw.text(text), raw.score(score)) for place, text, score in rows]
