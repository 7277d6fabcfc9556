"""Systems on a real Redis in a few words: leaders, pods in places, and what is really there."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import Move, QueueName
from dsched.state import client, keys
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.queue import Queue
from dsched.state.reservations import OK, Request, Reservations
from dsched.state.usage import Usage
from tests.redis_server import RedisServer

DEADLINE_S = 30.0
NOW_MS = 1_700_000_000_000
LONG_MS = 3_600_000


@contextmanager
def system(server: RedisServer) -> Iterator[Store]:
    """A system of its own, for tests that make many."""
    store = client.connect(server.url, f"test-{uuid.uuid4().hex}")
    try:
        yield store
    finally:
        store.close()


def take_over(store: Store) -> int:
    """Let a new leader lead, as if the lease of the present one had run out; returns its epoch."""
    store.redis.delete(store.key(keys.LEADER.name))
    lease = Lease(store, f"leader-{uuid.uuid4().hex}", LONG_MS)
    assert lease.acquire()
    return lease.epoch


def wait_until(what: str, condition: Callable[[], Any]) -> Any:
    """The condition's first true value; fails the test if there is none in time."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in {DEADLINE_S:g} s: {what}"
        time.sleep(0.01)
    return value


def dump(store: Store) -> dict[str, bytes]:
    """Every key of the system with all that is in it."""
    prefix = store.key("")
    names = sorted(store.redis.scan_iter(match=prefix + "*", count=10_000))
    return {name.decode()[len(prefix) :]: store.redis.dump(name) for name in names}


# -- pods --------------------------------------------------------------------------------------------------------------


def pod_of(name: str) -> tuple[PodKey, PodUid]:
    """Key and UID of the pod ``ns/name``."""
    return PodKey(f"ns/{name}"), PodUid(f"uid-{name}")


def move(
    name: str,
    source: QueueName,
    target: QueueName,
    *,
    score: int = NOW_MS,
    place: str = "turn",
    order: int = 0,
    uid: str = "",
    **fields: str | int,
) -> Move:
    """A move of the pod ``ns/name``; the score of the active queue is the order number."""
    key, known = pod_of(name)
    if target is QueueName.ACTIVE:
        score = order
    return Move(key, PodUid(uid) if uid else known, source, target, score, place, order, fields)


def put(queue: Queue, name: str, target: QueueName = QueueName.ACTIVE, **how: Any) -> None:
    """Take in a new pod."""
    assert queue.move([move(name, QueueName.NOWHERE, target, **how)]) == []


def fly(queue: Queue, *names: str) -> None:
    """Take in new pods and pop them, and nothing else."""
    for name in names:
        put(queue, name)
    assert {popped.key for popped in queue.pop("1-1", len(names), NOW_MS, from_backoff=False)} == {
        pod_of(name)[0] for name in names
    }


def places(store: Store) -> dict[str, list[str]]:
    """Pods by the place whose key holds them, in its order; the places of records in brackets.

    Read from the keys themselves, so that a pod in two places shows twice.
    """
    found: dict[str, list[str]] = {}
    zsets = (keys.ACTIVE, keys.BACKOFF, keys.UNSCHEDULABLE, keys.GATED, keys.WAITING)
    for key in zsets:
        members = [member.decode().split(" ")[-1] for member in store.redis.zrange(store.key(key.name), 0, -1)]
        found[key.name.removeprefix("queue:")] = members
    found["inflight"] = sorted(key.decode() for key in store.redis.hkeys(store.key(keys.INFLIGHT.name)))
    for name, fields in records(store).items():
        found.setdefault(f"[{fields['queue']}]", []).append(name)
    return {place: pods for place, pods in found.items() if pods}


def records(store: Store) -> dict[str, dict[str, str]]:
    """The records of pending pods, by key."""
    prefix = store.key(keys.POD.name)
    found = {}
    for name in sorted(store.redis.scan_iter(match=prefix + "*", count=10_000)):
        fields = store.redis.hgetall(name)
        found[name.decode()[len(prefix) :]] = {field.decode(): value.decode() for field, value in fields.items()}
    return found


# -- nodes -------------------------------------------------------------------------------------------------------------


def node_fields(store: Store, name: str) -> dict[str, str]:
    """A node's usage."""
    fields = store.redis.hgetall(store.key(keys.NODE.name + name))
    return {field.decode(): value.decode() for field, value in fields.items()}


def used(store: Store, name: str) -> dict[str, int]:
    """What is taken on a node, by resource; nothing for what is not."""
    found = {field.removeprefix("used."): int(value) for field, value in node_fields(store, name).items()}
    return {field: amount for field, amount in found.items() if amount and field in ("cpu", "memory", "pods")}


def with_node(store: Store, epoch: int, name: str = "n1", **allocatable: int) -> Usage:
    """Usage with one node."""
    usage = Usage(store, epoch)
    usage.set(NodeName(name), {"cpu": 4000, "pods": 110, **allocatable})
    usage.flush()
    return usage


def request(name: str, usage: Usage, node: str = "n1", cpu: int = 1000, *, ports: bool = False, **how: Any) -> Request:
    """A request for the pod ``ns/name`` on a node as it was last seen."""
    key, uid = pod_of(name)
    seen = usage.seen(NodeName(node))
    given = {"version": seen.version, "object_version": seen.object_version, **how}
    return Request(key, uid, NodeName(node), amounts={"cpu": cpu, "pods": 1}, has_ports=ports, **given)


def reserve(held: Reservations, queue: Queue, usage: Usage, name: str, **how: Any) -> None:
    """Take in a pod and reserve for it."""
    fly(queue, name)
    assert held.reserve([request(name, usage, **how)], NOW_MS) == [OK]
    usage.moved(NodeName("n1"))
