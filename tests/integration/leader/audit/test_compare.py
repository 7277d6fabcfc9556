"""What the leader believes is compared with the cluster and with Redis, and what is wrong is repaired.

The sabotage is what a lying watch, or somebody with redis-cli, would do.
"""

import logging
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from dsched.errors import StateError
from dsched.framework.interface import Action, Hint, Registration, Resource, Status, unschedulable
from dsched.leader.audit import compare
from dsched.metrics import SCHEDULED_AFTER_FLUSH
from dsched.model.meta import NodeName, PodUid
from dsched.model.queues import LABEL
from dsched.state import keys
from dsched.state.reservations import read_reservations
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, pod_manifest, queue_manifest
from tests.metrics import value
from tests.unit.plugins.fair_share.divided import CONFIGURATION


def counted(what: str) -> float:
    return REGISTRY.get_sample_value("dsched_cache_mismatch_total", {"what": what}) or 0.0


class Counting:
    """How often each mismatch was repaired since this was made."""

    def __init__(self) -> None:
        self._before = {what: counted(what) for what in KINDS}

    def repaired(self) -> dict[str, int]:
        found = {what: int(counted(what) - self._before[what]) for what in KINDS}
        return {what: number for what, number in found.items() if number}


def node(name: str, **allocatable: str) -> Json:
    return node_manifest(name, **allocatable)


def pod(name: str, cpu: str = "100m", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    requests = {"resources": {"requests": {"cpu": cpu}}}
    return pod_manifest(
        f"default/{name}", labels=labels, containers=[{"name": "main", "image": "nginx", **requests}], **spec
    )


WITH_SHUT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    filter: {enabled: [{name: Shut}]}
"""
KINDS = (
    *("node_missing", "node_redundant", "pod_missing", "pod_elsewhere", "pod_redundant"),
    *("queue_missing", "queue_elsewhere", "queue_redundant", "reservation_lost", "reservation_stray", "usage"),
    "quota",
)


def look(led: Led, seconds: float = compare.EVERY_S) -> None:
    """One whole look, so many seconds later; nothing else runs."""
    led.rig.clock.advance(seconds)
    made: Any = led.term.audit
    made.step()
    for _ in range(10_000):
        if made._look is None:
            return
        made.step()
    raise AssertionError("the look does not end")


def looks(led: Led) -> None:
    """As many as it takes for a lasting mismatch to be repaired, heard of or not."""
    for seconds in (compare.EVERY_S, compare.UNHEARD_S, compare.EVERY_S):
        look(led, seconds)


@pytest.fixture
def led(rig: Rig) -> Led:
    """Two nodes; a pod bound, a pod that fits nowhere, a pod in backoff."""
    rig.apply(node("n1"), node("n2"), pod("bound"), pod("big", cpu="1000"))
    led = rig.lead()
    led.run()
    return led


def deaf(led: Led) -> None:
    """The leader misses everything that happened since it last heard."""
    led.term.marks.version = led.rig.cluster.newest_version()


def test_nothing_is_found_where_nothing_is_wrong(led: Led) -> None:
    counting = Counting()
    looks(led)
    assert counting.repaired() == {}
    assert led.term.audit._since == {}
    led.agree()


def test_missed_pods_and_nodes_are_taken_in(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    counting = Counting()
    led.rig.apply(node("n3"), pod("late"))
    deaf(led)
    looks(led)
    assert counting.repaired() == {"node_missing": 1, "pod_missing": 1}
    named = {
        (record.what, getattr(record, "pod", "") or record.node) for record in caplog.records if hasattr(record, "what")
    }
    assert named == {("node_missing", "n3"), ("pod_missing", "default/late")}
    led.run()
    assert led.rig.node_of("default/late")


def test_a_change_of_a_node_that_was_missed_is_taken_in(led: Led) -> None:
    counting = Counting()
    led.rig.apply(node_manifest("n1", labels={"zone": "a"}))
    deaf(led)
    looks(led)
    assert counting.repaired() == {"node_missing": 1}
    table = led.term.memory.cache.snapshot.table
    assert table.nodes[table.index["n1"]].metadata.labels["zone"] == "a"


def test_pods_and_nodes_that_are_gone_are_forgotten(led: Led) -> None:
    counting = Counting()
    led.rig.delete_pod("default/bound")
    led.rig.delete_pod("default/big")
    led.rig.delete_node("n2")
    deaf(led)
    looks(led)
    assert counting.repaired() == {"node_redundant": 1, "pod_redundant": 2}
    assert led.rig.used("n1") == {}
    led.agree()


def test_a_pod_that_somebody_else_bound_unheard_is_counted_where_it_is(led: Led) -> None:
    counting = Counting()
    led.rig.bind_foreign("default/big", "n2")
    deaf(led)
    looks(led)
    assert counting.repaired() == {"pod_elsewhere": 1}
    assert led.term.memory.cache.snapshot.table.node_of(PodUid(led.rig.uid("default/big"))) == "n2"
    led.agree()


def test_a_pod_that_the_cache_has_on_a_wrong_node_is_put_right(led: Led) -> None:
    counting = Counting()
    uid = PodUid(led.rig.uid("default/bound"))
    cache = led.term.memory.cache
    was = cache.snapshot.table.node_of(uid)
    info = cache.snapshot.table.pod(uid)
    cache.add_pod(info, NodeName("n2" if was == "n1" else "n1"))
    looks(led)
    assert counting.repaired() == {"pod_elsewhere": 1}
    assert cache.snapshot.table.node_of(uid) == was


def test_a_change_on_its_way_is_no_mismatch(led: Led) -> None:
    """Known to the cluster, not yet to the leader: it is suspected, and then heard of."""
    counting = Counting()
    led.rig.apply(pod("late"))
    look(led)
    look(led, compare.HELD_S)
    assert len(led.term.audit._since) == 1
    led.hear()
    look(led, compare.UNHEARD_S)
    assert counting.repaired() == {}
    assert led.term.audit._since == {}


def test_what_changes_between_two_looks_begins_anew(led: Led) -> None:
    counting = Counting()
    led.rig.apply(pod("late"))
    for label in ("a", "b", "c"):
        led.rig.apply(pod("late", labels={"step": label}))
        deaf(led)
        look(led)
    assert counting.repaired() == {}
    look(led)
    assert counting.repaired() == {"pod_missing": 1}


def test_pods_of_other_schedulers_are_not_missed(led: Led) -> None:
    counting = Counting()
    led.rig.apply(pod("foreign", schedulerName="other"))
    deaf(led)
    looks(led)
    looks(led)
    assert counting.repaired() == {}
    assert led.term.audit._since == {}


def test_a_record_that_was_lost_is_written_anew(led: Led) -> None:
    counting = Counting()
    store = led.rig.store
    store.redis.delete(store.key("pod:default/big"))
    store.redis.delete(store.key(keys.UNSCHEDULABLE.name))
    looks(led)
    assert counting.repaired() == {"queue_missing": 1}
    assert led.rig.queue("default/big") == led.place("default/big") == "active"
    led.run()


def test_a_pod_that_is_listed_nowhere_is_listed_again(led: Led) -> None:
    counting = Counting()
    store = led.rig.store
    store.redis.delete(store.key(keys.UNSCHEDULABLE.name))
    looks(led)
    assert counting.repaired() == {"queue_missing": 1}
    assert store.redis.zcard(store.key(keys.UNSCHEDULABLE.name)) == 1


@pytest.mark.parametrize(
    ("there", "after"), [("backoff", "backoff"), ("active", "active"), ("inflight", "active"), ("reserved", "active")]
)
def test_redis_is_believed_of_where_a_pod_stands(led: Led, there: str, after: str) -> None:
    counting = Counting()
    store = led.rig.store
    store.redis.hset(store.key("pod:default/big"), "queue", there)
    looks(led)
    assert counting.repaired() == {"queue_elsewhere": 1}
    assert led.rig.queue("default/big") == led.place("default/big") == after
    led.agree()


def test_a_record_of_no_pod_is_removed(led: Led) -> None:
    counting = Counting()
    store = led.rig.store
    store.redis.hset(store.key("pod:default/ghost"), mapping={"uid": "g", "queue": "active", "place": "0"})
    store.redis.zadd(store.key(keys.ACTIVE.name), {"0 default/ghost": 0})
    looks(led)
    assert counting.repaired() == {"queue_redundant": 1}
    assert led.rig.record("default/ghost") == {}
    assert store.redis.zcard(store.key(keys.ACTIVE.name)) == 0


def test_a_stray_reservation_is_released(led: Led) -> None:
    counting = Counting()
    store = led.rig.store
    store.redis.hset(store.key(keys.RESERVATIONS.name), "g", f"default/ghost n1 {led.epoch} reserved 1 0")
    looks(led)
    assert counting.repaired() == {"reservation_stray": 1}
    assert read_reservations(store) == []
    led.agree()


def test_a_reservation_that_redis_has_lost_makes_the_leader_start_over(led: Led) -> None:
    led.rig.apply(pod("reserved"))
    led.turns()
    store = led.rig.store
    assert len(read_reservations(store)) == 1
    store.redis.delete(store.key(keys.RESERVATIONS.name))
    with pytest.raises(StateError, match="default/reserved: its reservation is no longer in Redis"):
        looks(led)


def test_wrong_usage_is_written_anew(led: Led) -> None:
    counting = Counting()
    store = led.rig.store
    before = led.rig.used("n1"), led.rig.used("n2")
    store.redis.hincrby(store.key("node:n1"), "used.cpu", 12345)
    store.redis.delete(store.key("node:n2"))
    looks(led)
    assert counting.repaired() == {"usage": 2}
    assert (led.rig.used("n1"), led.rig.used("n2")) == before
    led.agree()
    led.rig.apply(pod("next"))
    led.run()
    assert led.rig.node_of("default/next")


def test_looking_while_pods_come_bind_and_go_finds_nothing(led: Led) -> None:
    """A piece a turn, while everything moves."""
    counting = Counting()
    for number in range(30):
        led.rig.apply(pod(f"p{number}"))
        led.turn()
        for request in led.requests():
            led.rig.binder.work(request)
        if number % 3 == 2:
            led.rig.delete_pod(f"default/p{number - 2}")
        led.rig.clock.advance(compare.EVERY_S if number % 5 == 0 else compare.STEP_S)
    led.run()
    looks(led)
    assert counting.repaired() == {}


def missed(plugin: str = "NodeResourcesFit", event: str = "none") -> float:
    labels = {"plugin": plugin, "event": event}
    return REGISTRY.get_sample_value("dsched_missed_pods_total", labels) or 0.0


def test_a_pod_that_only_the_flush_moved_and_that_fits_is_counted_with_its_plugin(rig: Rig) -> None:
    rig.apply(node("n1", cpu="1"), pod("big", cpu="4"))
    led = rig.lead()
    led.run()
    before, flushed = missed(), value(SCHEDULED_AFTER_FLUSH)
    rig.clock.advance(301)
    led.run()
    assert missed() == before, "it was tried again and still does not fit"
    # The node grows and the plugin's event is lost.
    grown = msgspec.structs.replace(led.term.memory.cache.snapshot.table.nodes[0], status=rig_node(rig, "8").status)
    led.term.memory.cache.set_node(grown)
    led.run()
    assert rig.node_of("default/big") == ""
    rig.clock.advance(331)
    led.run()
    assert rig.node_of("default/big") == "n1"
    assert (missed(), value(SCHEDULED_AFTER_FLUSH)) == (before + 1, flushed + 1)


class Shut:
    """Rejects nodes that are not labelled ``open``, and takes a change of a node for nothing that helps."""

    name = "Shut"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return None if "open" in node.node.metadata.labels else unschedulable("shut")

    def events_to_register(self) -> list[Registration]:
        return [Registration(Resource.NODE, frozenset({Action.ADD, Action.UPDATE}), lambda pod, event: Hint.SKIP)]


def test_a_pod_that_a_hint_passed_over_is_counted_with_the_event(rig: Rig) -> None:
    rig.configure(WITH_SHUT, Shut)
    rig.apply(node_manifest("n1"), pod("web"))
    led = rig.lead()
    led.run()
    rig.apply(node_manifest("n1", labels={"open": "yes"}))
    led.run()
    assert rig.node_of("default/web") == "", "the hint says that this does not help"
    before = {event: missed("Shut", event) for event in ("NodeUpdate", "NodeAdd", "none")}
    rig.clock.advance(331)
    led.run()
    assert rig.node_of("default/web") == "n1"
    assert {event: missed("Shut", event) - count for event, count in before.items()} == {
        "NodeUpdate": 1,
        "NodeAdd": 0,
        "none": 0,
    }


def rig_node(rig: Rig, cpu: str) -> Any:
    """The node of the cluster, grown."""
    rig.apply(node("n1", cpu=cpu))
    (event,) = [each for each in rig.cluster.list().nodes if each.name == "n1"]
    return event


@pytest.mark.parametrize(("field", "amount"), [("used.cpu", 77), ("used.memory", 5), ("allocatable.cpu", 1)])
def test_what_redis_counts_against_a_limit_is_put_right(rig: Rig, field: str, amount: int) -> None:
    rig.configure(CONFIGURATION)
    limited = {"cpu": {"limit": 3}}
    rig.apply(queue_manifest("top", resources=limited), queue_manifest("a", "top", resources={"pods": {"limit": 9}}))
    rig.apply(node("n1"), *[pod(f"p{number}", cpu="1", labels={LABEL: "a"}) for number in range(4)])
    led = rig.lead()
    led.run()
    counting, key = Counting(), rig.store.key("quota:top")
    looks(led)
    assert counting.repaired() == {}
    rig.store.redis.hset(key, field, amount)
    looks(led)
    assert counting.repaired() == {"quota": 1}
    fields = {name.decode(): int(text) for name, text in rig.store.redis.hgetall(key).items() if b"." in name}
    assert {name: value for name, value in fields.items() if value} == {"allocatable.cpu": 3000, "used.cpu": 3000}
    rig.delete_pod("default/p0")
    led.run()
    looks(led)
    assert counting.repaired() == {"quota": 1}


def test_a_queue_that_is_gone_from_redis_is_written_anew(rig: Rig) -> None:
    rig.configure(CONFIGURATION)
    rig.apply(queue_manifest("a", resources={"pods": {"limit": 2}}), node("n1"), pod("p", labels={LABEL: "a"}))
    led = rig.lead()
    led.run()
    counting, key = Counting(), rig.store.key("quota:a")
    rig.store.redis.delete(key)
    looks(led)
    assert counting.repaired() == {"quota": 1}
    assert rig.store.redis.hget(key, "used.pods") == b"1"
