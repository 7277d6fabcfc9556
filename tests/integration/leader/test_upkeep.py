"""Whatever somebody else has written into the scheduler's state, a leader tells it, clears it and goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsched.clock import SystemClock
from dsched.cluster.standalone import keys as cluster_keys
from dsched.errors import CannotEvaluate, StateError
from dsched.fsck.inspection import inspect
from dsched.leader.upkeep import Upkeep
from dsched.metrics import UNREADABLE
from dsched.scheduler.cache import Cache
from dsched.state import counters, keys, leader_config, misfits, workers
from dsched.state.client import Store, WrongType
from dsched.state.keys import Key
from dsched.state.leader_config import LeaderConfig
from dsched.state.lease import Lease, holder
from dsched.state.node_log import NodeLog, Replica
from dsched.state.usage import Usage
from dsched.state.workers import Worker
from tests.builders import make_node, make_snapshot
from tests.integration.leader.rig import Led, Rig
from tests.integration.state.support import take_over
from tests.manifests import node_manifest, pod_manifest
from tests.metrics import value

NOW_MS = 1_700_000_000_000
WRONG = [key for key in keys.ALL if key not in (keys.REPLIES, keys.EXPLAINED)]


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(store, tmp_path, monkeypatch)


def spoil(store: Store, key: Key, member: str = "") -> str:
    name = store.key(key.name + member)
    store.redis.delete(name)
    if key.type == "string":
        store.redis.rpush(name, "x")
    else:
        store.redis.set(name, "x")
    return name


def counted(what: str) -> float:
    return value(UNREADABLE.labels(what))


def bound(rig: Rig, led: Led, name: str) -> None:
    rig.apply(pod_manifest(name))
    led.turns()
    for request in led.dispatcher.binds:
        rig.binder.work(request)
    led.dispatcher.binds.clear()
    led.turns()
    assert rig.node_of(name) == "n1"


def begun(rig: Rig) -> Led:
    led = rig.elect()
    led.term.upkeep.begin()
    led.take_over()
    return led


@pytest.mark.parametrize("key", [*WRONG, cluster_keys.STATE], ids=lambda key: key.name)
def test_fsck_tells_of_a_key_of_another_type(rig: Rig, key: Key) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("default/a"))
    begun(rig)
    name = spoil(rig.store, key, {"pod:": "default/a", "node:": "n1"}.get(key.name, ""))
    report = inspect(rig.store, SystemClock(), pause_s=0.0, oldest_reservation_s=1e9)
    told = [finding for finding in report.breaches if finding.rule == "type"]
    if key in (keys.LEADER, *keys.QUEUES_AND_RESERVATIONS, keys.INTAKE, cluster_keys.STATE):
        assert [rig.store.key(finding.subject) for finding in told] == [name]


@pytest.mark.parametrize("key", WRONG, ids=lambda key: key.name)
def test_a_key_of_another_type_is_cleared_and_pods_are_bound_again(rig: Rig, key: Key) -> None:
    rig.apply(node_manifest("n1"))
    led = begun(rig)
    bound(rig, led, "default/a")
    rig.apply(pod_manifest("default/nowhere", nodeSelector={"no": "such-node"}))
    led.turns()
    spoil(rig.store, key, {"pod:": "default/nowhere", "node:": "n1"}.get(key.name, ""))
    before = counted(key.name)
    try:
        led.term.upkeep.look()
        bound(rig, led, "default/b")
        inspect(rig.store, SystemClock(), pause_s=0.0)
    except (StateError, AssertionError):  # it starts over
        if key is not keys.EPOCH:
            led.term.upkeep.clear()
        led = begun(rig)
        bound(rig, led, "default/b")
    if key in (keys.POD, keys.QUOTA):  # nobody has met it yet; the comparer will, or whoever comes with a queue
        led.term.upkeep.clear()
        begun(rig).turns()
    assert not misfits.find_all(rig.store)
    assert inspect(rig.store, SystemClock(), pause_s=0.0, oldest_reservation_s=1e9).breaches == ()
    if key not in (keys.EPOCH, keys.LEADER):
        assert counted(key.name) == before + 1


def test_garbage_among_workers_is_told_counted_and_dropped(store: Store) -> None:
    epoch = take_over(store)
    name = store.key(keys.WORKERS.name)
    lives = Worker("evaluator-1", "evaluator", NOW_MS, "3f2a")
    workers.note(store, lives)
    garbage: dict[Any, Any] = {
        "evil": "x y z",
        b"\xff\xfe": "binder 5 3f2a",
        "huge": "binder 99999999999999999999999 3f2a",
        "other": "leader 5 3f2a",
        "line\nbreak": "binder 5 3f2a",
        "long" * 1000: "binder 5 3f2a",
        "bytes": b"\xff\xfe",
        "": "",
    }
    store.redis.hset(name, mapping=garbage)
    assert workers.read(store) == [lives]
    before = counted("workers")
    upkeep(store, epoch).look()
    assert counted("workers") == before + len(garbage)
    assert [field.decode() for field in store.redis.hkeys(name)] == ["evaluator-1"]


def test_no_more_workers_are_pinged_than_anybody_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST", 3)
    for number in range(5):
        workers.note(store, Worker(f"evaluator-{number}", "evaluator", NOW_MS, "3f2a"))
    found, left = workers.look(store)
    assert [worker.name for worker in found] == ["evaluator-0", "evaluator-1", "evaluator-2"]
    assert sorted(left) == [b"evaluator-3", b"evaluator-4"]


def upkeep(store: Store, epoch: int, told: LeaderConfig | None = None) -> Upkeep:
    return Upkeep(store, epoch, NodeLog(store, epoch), told)


SPOILERS: dict[str, Callable[[Store, str], object]] = {
    "another one": lambda store, name: store.redis.set(name, '{"epoch":1,"hash":"evil","cluster":"standalone"}'),
    "no JSON": lambda store, name: store.redis.set(name, b"\xff{"),
    "another type": lambda store, name: (store.redis.delete(name), store.redis.hset(name, "hash", "evil")),
    "gone": lambda store, name: store.redis.delete(name),
}


@pytest.mark.parametrize("spoiler", SPOILERS)
def test_a_configuration_that_is_not_the_leaders_is_published_anew(store: Store, spoiler: str) -> None:
    told = LeaderConfig(take_over(store), "3f2a", "standalone", "scheduler.yaml", "a: b")
    kept = upkeep(store, told.epoch, told)
    leader_config.publish(store, told)
    SPOILERS[spoiler](store, store.key(keys.CONFIGURATION.name))
    kept.look()
    assert leader_config.read(store) == told
    before = counted(keys.CONFIGURATION.name)
    kept.look()
    assert counted(keys.CONFIGURATION.name) == before


def test_the_key_of_earlier_versions_is_deleted(store: Store) -> None:
    store.redis.hset(store.key("configuration"), "hash", "x")
    upkeep(store, take_over(store)).begin()
    assert not store.redis.exists(store.key("configuration"))


# -- the node log ------------------------------------------------------------------------------------------------------

LOG_SPOILERS: dict[str, Callable[[Store, str], object]] = {
    "an entry of the largest number": lambda store, name: store.redis.xadd(name, {"x": "y"}, id=f"{2**64 - 1}-0"),
    "an entry in between": lambda store, name: store.redis.xadd(name, {"deltas": b"\xff", "first": "1"}),
    "another type": lambda store, name: (store.redis.delete(name), store.redis.set(name, "x")),
    "gone": lambda store, name: store.redis.delete(name),
    "its last entry gone": lambda store, name: store.redis.xdel(name, store.redis.xrevrange(name, count=1)[0][0]),
}


@pytest.mark.parametrize("asked", ["by the next change", "by a look", "by the next leader"])
@pytest.mark.parametrize("spoiler", LOG_SPOILERS)
def test_a_node_log_that_somebody_else_wrote_to_is_begun_anew(store: Store, spoiler: str, asked: str) -> None:
    epoch = take_over(store)
    snapshot = make_snapshot([make_node("n1")])
    log = NodeLog(store, epoch)
    cache = Cache(Usage(store, epoch), log)
    log.publish(snapshot)
    LOG_SPOILERS[spoiler](store, store.key(keys.NODES_LOG.name))
    if asked == "by the next leader":
        epoch = take_over(store)
        if spoiler == "another type":
            upkeep(store, epoch).begin()
        log = NodeLog(store, epoch)
    elif asked == "by a look":
        Upkeep(store, epoch, log).look()
        assert not log.following
    else:
        cache.set_node(make_node("n2"))
    version = log.publish(snapshot)
    replica = Replica(store)
    replica.catch_up(version)
    assert list(replica.snapshot.table.names) == ["n1"]
    log.check()
    assert log.following


def test_a_log_of_another_type_is_refused(store: Store) -> None:
    store.redis.set(store.key(keys.NODES_LOG.name), "x")
    with pytest.raises(CannotEvaluate, match="cannot be read"):
        Replica(store).catch_up(5)


def test_an_entry_without_its_fields_is_refused(store: Store) -> None:
    store.redis.xadd(store.key(keys.NODES_LOG.name), {"x": "y"}, id="5-0")
    with pytest.raises(CannotEvaluate, match="cannot be read"):
        Replica(store).catch_up(5)


# -- the lease ---------------------------------------------------------------------------------------------------------

LEASES: dict[str, Callable[[Store, str, str], object]] = {
    "another type": lambda store, lease, epoch: (store.redis.delete(lease), store.redis.hset(lease, "a", "b")),
    "an epoch of another type": lambda store, lease, epoch: (store.redis.delete(epoch), store.redis.rpush(epoch, "b")),
    "no number": lambda store, lease, epoch: store.redis.set(epoch, "many"),
    "too large a number": lambda store, lease, epoch: store.redis.set(epoch, "9" * 30),
    "the largest number": lambda store, lease, epoch: store.redis.set(epoch, 2**63 - 1),
    "words": lambda store, lease, epoch: store.redis.set(lease, "mine for ever"),
    "bytes": lambda store, lease, epoch: store.redis.set(lease, b"\xff\xfe"),
    "without an end": lambda store, lease, epoch: store.redis.set(lease, "mine 1"),
}


@pytest.mark.parametrize("spoiler", LEASES)
def test_a_lease_that_no_leader_wrote_keeps_nobody_from_leading(store: Store, spoiler: str) -> None:
    first = Lease(store, "first", 60_000)
    assert first.acquire()
    LEASES[spoiler](store, store.key(keys.LEADER.name), store.key(keys.EPOCH.name))
    assert first.acquire() or first.acquire(), "the one that led"
    assert first.epoch > 1
    assert holder(store) == ("first", first.epoch)
    assert int(store.redis.get(store.key(keys.EPOCH.name))) == first.epoch


@pytest.mark.parametrize("spoiler", ["another type", "words", "bytes", "without an end"])
def test_another_process_takes_such_a_lease(store: Store, spoiler: str) -> None:
    Lease(store, "first", 60_000).acquire()
    LEASES[spoiler](store, store.key(keys.LEADER.name), store.key(keys.EPOCH.name))
    other = Lease(store, "other", 60_000)
    assert other.acquire()
    assert other.epoch == 2
    assert other.garbage == ("leader",)


def test_another_type_is_an_error_on_purpose(store: Store) -> None:
    store.redis.set(store.key("workers"), "x")
    with pytest.raises(WrongType, match="a leader clears it: WRONGTYPE"):
        store.redis.hgetall(store.key("workers"))


def test_a_queue_pop_ends_whatever_the_scores_are(rig: Rig) -> None:
    """Redis is busy for ever, otherwise."""
    rig.apply(node_manifest("n1"))
    led = begun(rig)
    for score in ("inf", "-inf", "1e300", "-1e300", "1e18"):
        rig.store.redis.zadd(rig.store.key(keys.BACKOFF.name), {"default/nobody": score})
        led.turns()
    bound(rig, led, "default/a")


@pytest.mark.parametrize("text", ["many", "", "1.5", str(2**63 - 1)])
def test_a_counter_that_is_no_number_begins_anew(store: Store, text: str) -> None:
    for key in (keys.RELOAD, keys.DECISIONS):
        store.redis.set(store.key(key.name), text)
        assert counters.add(store, key, 2) == 2
        assert counters.add(store, key) == 3
    store.redis.delete(store.key(keys.RELOAD.name))
    store.redis.rpush(store.key(keys.RELOAD.name), "x")
    assert counters.add(store, keys.RELOAD) == 1
