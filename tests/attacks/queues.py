"""Queues so long, and scripts of others so slow, that Redis would have no time for the lease."""

import random
from collections import Counter

from dsched.errors import RedisUnavailable
from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import Move, QueueName
from dsched.state import client, keys, pieces
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.queue import Queue, read_records
from tests.attacks.attack import Stand, attack
from tests.busy_redis import busy

PODS = 20_000
LONG_MS = 3_600_000
PLACES = (QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE, QueueName.GATED)


def moves(pods: list[int], source: QueueName, target: QueueName) -> list[Move]:
    """Of pods by their numbers."""
    return [Move(PodKey(f"shop/p{n}"), PodUid(f"u{n}"), source, target, n, f"{n:07}", n) for n in pods]


def calls(store: Store) -> int:
    """How many scripts Redis has run."""
    return int(store.redis.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


def standing(store: Store) -> Counter[str]:
    """How many members each place has."""
    named = {QueueName.ACTIVE: keys.ACTIVE, QueueName.BACKOFF: keys.BACKOFF}
    named |= {QueueName.UNSCHEDULABLE: keys.UNSCHEDULABLE, QueueName.GATED: keys.GATED}
    return Counter({place: store.redis.zcard(store.key(key.name)) for place, key in named.items()})


class Killed(Exception):
    """The leader is killed here."""


def dying(queue: Queue, after: int) -> None:
    """Have the leader killed once Redis has made so many pieces of its moves."""
    made = 0
    send = queue._move.ahead

    def ahead(*args: object) -> int:
        nonlocal made
        if made == after:
            raise Killed
        made += 1
        return send(*args)  # type: ignore[arg-type]

    queue._move.ahead = ahead  # type: ignore[assignment]


@attack(
    "a queue of 20,000 pods is moved at once, and the leader killed in between",
    sees="Redis answers others all the while; each pod is in one place, and the next leader moves the rest",
)
def long_queue_moved_at_once(stand: Stand) -> None:
    store, pods = stand.store(), list(range(PODS))
    lease = Lease(store, "one", LONG_MS)
    assert lease.acquire()
    source, target = stand.rng.sample(PLACES, 2)
    queue = Queue(store, lease.epoch)
    before = calls(store)
    assert queue.move(moves(pods, QueueName.NOWHERE, source)) == []
    assert calls(store) - before >= PODS // pieces.AT_MOST
    stand.rng.shuffle(pods)
    dying(queue, after := stand.rng.randrange(1, PODS // pieces.AT_MOST))
    try:
        queue.move(moves(pods, source, target))
        raise AssertionError("it was not killed")
    except Killed:
        pass
    moved = after * pieces.AT_MOST
    assert standing(store) == Counter({source: PODS - moved, target: moved})
    lease.release()
    assert lease.acquire()
    refused = Queue(store, lease.epoch).move(moves(pods, source, target))
    assert refused == list(range(moved))
    assert standing(store) == Counter({target: PODS})
    assert Counter(record.queue for record in read_records(store)) == Counter({target: PODS})


@attack(
    "a leader is lost with far more pods in flight than it takes at a time",
    sees="the next one puts all of them back, a piece after the other",
)
def crowd_in_flight(stand: Stand) -> None:
    store, pods = stand.store(), list(range(PODS // 2))
    lease = Lease(store, "one", LONG_MS)
    assert lease.acquire()
    queue = Queue(store, lease.epoch)
    queue.move(moves(pods, QueueName.NOWHERE, QueueName.ACTIVE))
    flying = 0
    while found := queue.pop(f"{lease.epoch}-1", stand.rng.randrange(256, 10 * pieces.AT_MOST), 0, from_backoff=False):
        assert len(found) <= pieces.LIGHT_AT_MOST
        flying += len(found)
    assert flying == len(pods)
    lease.release()
    assert lease.acquire()
    assert Queue(store, lease.epoch).recover() == len(pods)
    assert standing(store) == Counter({QueueName.ACTIVE: len(pods)})
    assert store.redis.hlen(store.key(keys.INFLIGHT.name)) == 0


@attack(
    "somebody pauses a profile of which thousands of pods stand first",
    sees="the pods behind them are decided; no script looks at all that wait",
)
def crowd_of_a_paused_profile(stand: Stand) -> None:
    store = stand.store()
    lease = Lease(store, "one", LONG_MS)
    assert lease.acquire()
    queue = Queue(store, lease.epoch)
    first = stand.rng.randrange(5_000, 10_000)
    queue.move([_of_profile(number, "paused") for number in range(first)])
    queue.move([_of_profile(number, "other") for number in range(first, first + 10)])
    store.redis.hset(store.key(keys.PAUSED.name), "paused", "0 attacked")
    popped: list[str] = []
    while batch := queue.pop("1", 32, 0, from_backoff=True):  # two of them where one script ends amid the ten
        popped += [each.key for each in batch]
    assert popped == [f"shop/p{number}" for number in range(first, first + 10)]


def _of_profile(number: int, profile: str) -> Move:
    key, uid = PodKey(f"shop/p{number}"), PodUid(f"u{number}")
    return Move(key, uid, QueueName.NOWHERE, QueueName.ACTIVE, number, "", number, {"profile": profile})


@attack(
    "somebody runs a script in Redis that does not end, while everything runs",
    sees="nothing ends; commands say that Redis is busy and how to end the script, and then all goes on",
)
def script_of_somebody_else(stand: Stand) -> None:
    store = stand.store()
    lease = Lease(store, "one", LONG_MS)
    assert lease.acquire()
    queue = Queue(store, lease.epoch)
    numbers = range(stand.rounds)
    queue.move(moves(list(numbers), QueueName.NOWHERE, QueueName.ACTIVE))
    acts = [
        lease.renew,
        lambda: queue.move(moves(list(numbers), QueueName.ACTIVE, QueueName.BACKOFF)),
        lambda: list(read_records(store)),
        queue.recover,
        store.redis.ping,
    ]
    with busy(stand.redis()):
        for act in random.Random(stand.rng.random()).choices(acts, k=stand.rounds):
            try:
                with client.reachable(store):
                    act()
                raise AssertionError("Redis was not busy")
            except RedisUnavailable as error:
                assert "SCRIPT KILL" in str(error)
    lease.renew()
    assert standing(store) == Counter({QueueName.ACTIVE: len(numbers)})
