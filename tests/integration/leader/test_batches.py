"""Batches overlap: while Redis reserves one and pops the next, the leader hears what happens in the cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from dsched.leader.batches import ASK_AGAIN_S
from dsched.leader.sources import Answered
from dsched.scheduler.ports import QueueName
from dsched.state import keys
from dsched.state.queue import read_records
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, other_manifest, pod_manifest

PODS = [f"shop/p{number}" for number in range(9)]
SIZE = 3


def pod(key: str, **fields: Any) -> Json:
    """Half a core."""
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "500m"}}}
    return pod_manifest(key, containers=[container], **fields)


def begin(rig: Rig) -> Led:
    """A leader that has begun a batch (p0 to p2, all on n1, which is larger) and had the next one popped."""
    rig.apply(node_manifest("n1", cpu="8"), node_manifest("n2", cpu="2"))
    led = rig.lead()
    rig.apply(*(pod(name) for name in PODS))
    led.hear()
    led.term.batches.size = SIZE
    led.term.batches.decide()
    assert led.term.batches.begun
    assert led.dispatcher.binds == []
    return led


def test_a_batch_is_reserved_and_the_next_one_in_flight_when_it_is_finished(rig: Rig, check: Checker) -> None:
    led = begin(rig)
    assert set(rig.reserved()) <= set(PODS[:SIZE])  # sent, and done soon
    led.term.batches.finish()
    assert set(rig.reserved()) == set(PODS[:SIZE])
    (request,) = led.requests()
    assert [item.key for item in request.pods] == PODS[:SIZE]
    led.term.state.line.settle()
    assert sorted(rig.store.redis.hkeys(rig.store.key(keys.INFLIGHT.name))) == [name.encode() for name in PODS[3:6]]
    assert [led.place(name) for name in PODS] == ["reserved"] * 3 + ["inflight"] * 3 + ["active"] * 3
    rig.binder.work(request)
    led.run()
    check.at_rest()
    assert all(rig.node_of(name) for name in PODS)


def test_redis_is_asked_for_pods_where_there_are_some_and_else_now_and_then(
    rig: Rig, check: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    led.turns()
    asked: list[str] = []
    pop = led.term.state.queue.pop

    def counted(batch: str, *args: Any, **others: Any) -> Any:
        asked.append(batch)
        return pop(batch, *args, **others)

    monkeypatch.setattr(led.term.state.queue, "pop", counted)
    for _ in range(3):
        led.turn()
    assert not asked
    rig.apply(pod("shop/a"))
    led.turn()
    assert len(asked) == 1 and rig.reserved()
    led.run()
    assert len(asked) == 1
    rig.clock.advance(ASK_AGAIN_S)
    for _ in range(3):
        led.turn()
    assert len(asked) == 2
    check.at_rest()


def test_a_pod_that_stands_in_redis_where_the_leader_does_not_believe_it_is_popped_all_the_same(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="100m"), pod("shop/a"))
    led = rig.lead()
    led.run()
    state, pending = led.term.state, led.term.memory.pending
    state.queue.move([pending.move(pending.get("shop/a"), QueueName.ACTIVE)])
    led.turns()
    assert [record.queue for record in read_records(rig.store)] == [QueueName.ACTIVE]
    rig.clock.advance(ASK_AGAIN_S)
    led.run()
    assert [(each.queue, each.attempts) for each in read_records(rig.store)] == [(QueueName.UNSCHEDULABLE, 2)]


def test_nothing_is_popped_ahead_of_a_batch_that_was_not_full(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), *(pod_manifest(name) for name in PODS))
    led = rig.lead()
    assert led.term.batches.size > len(PODS)
    led.term.batches.decide()
    assert not led.term.batches.begun
    assert len(rig.reserved()) == len(PODS)
    led.run()
    check.at_rest()


def test_a_pod_with_which_processes_were_lost_has_nobody_in_flight_beside_it(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), *(pod_manifest(name) for name in PODS))
    led = rig.lead()
    led.term.memory.pending.crashed(led.term.memory.pending.get(PODS[8]), 2)
    for _ in PODS:
        led.term.batches.decide()
        assert not led.term.batches.begun
        assert rig.store.redis.hlen(rig.store.key(keys.INFLIGHT.name)) == 0


HAPPENINGS: dict[str, Callable[[Rig], Any]] = {
    "nothing": lambda rig: None,
    "a pod of the batch is deleted": lambda rig: rig.delete_pod(PODS[1]),
    "a pod of the next batch is deleted": lambda rig: rig.delete_pod(PODS[4]),
    "a waiting pod is deleted": lambda rig: rig.delete_pod(PODS[7]),
    "a pod of the batch is bound elsewhere by somebody": lambda rig: rig.bind_foreign(PODS[0], "n2"),
    "a pod of the batch is bound where it is reserved, by somebody": lambda rig: rig.bind_foreign(PODS[0], "n1"),
    "a pod of the next batch is bound by somebody": lambda rig: rig.bind_foreign(PODS[5], "n2"),
    "a pod of the batch changes": lambda rig: rig.apply(pod(PODS[0], labels={"a": "b"})),
    "a pod of the next batch changes": lambda rig: rig.apply(pod(PODS[4], labels={"a": "b"})),
    "a pod of the batch is exchanged": lambda rig: (
        rig.delete_pod(PODS[2]),
        rig.apply(pod(PODS[2])),
    ),
    "its node goes": lambda rig: rig.delete_node("n1"),
    "its node becomes too small": lambda rig: rig.apply(node_manifest("n1", cpu="1")),
    "its node is exchanged": lambda rig: (rig.delete_node("n1"), rig.apply(node_manifest("n1", cpu="8"))),
    "a node comes": lambda rig: rig.apply(node_manifest("n3")),
    "a pod comes": lambda rig: rig.apply(pod_manifest("shop/new")),
    "another object comes": lambda rig: rig.apply(
        other_manifest("StorageClass", "storage.k8s.io/v1", "fast", provisioner="x")
    ),
}


@pytest.mark.parametrize("what", HAPPENINGS)
def test_what_happens_while_a_batch_is_reserved_comes_to_the_same_as_after_it(
    rig: Rig, check: Checker, what: str
) -> None:
    led = begin(rig)
    HAPPENINGS[what](rig)
    led.hear()
    led.term.batches.finish()
    led.term.state.line.settle()
    check.always()
    led.run()
    rig.clock.advance(11)
    led.run()
    check.at_rest()
    pods = rig.cluster.list().pods
    waits = {str(record.key) for record in read_records(rig.store)}
    assert waits == {pod.key for pod in pods if not pod.node_name}
    assert bool(waits) == (what in ("its node goes", "its node becomes too small")), waits


# Reservations are kept by the next leader, also on a node that has become too small meanwhile.
@pytest.mark.parametrize("what", sorted(HAPPENINGS.keys() - {"its node becomes too small"}))
def test_a_leader_that_is_lost_meanwhile_leaves_all_to_the_next_one(rig: Rig, check: Checker, what: str) -> None:
    led = begin(rig)
    HAPPENINGS[what](rig)
    led.term.state.line.settle()  # Redis has done what it was sent
    second = rig.lead()
    check.settled()
    rig.clock.advance(11)
    second.run()
    check.at_rest()
    crashes = {record.key: record.fields.get("crashes", "0") for record in read_records(rig.store)}
    assert set(crashes.values()) <= {"0", "1"}


def test_binds_of_the_batch_before_are_settled_while_one_is_reserved(rig: Rig, check: Checker) -> None:
    led = begin(rig)
    led.term.batches.finish()
    led.term.batches.decide()
    assert led.term.batches.begun
    (request,) = led.requests()
    rig.binder.work(request)
    events, version = rig.cluster.watch(led.term.heard, 0)
    led.term.intake.take(events)
    led.term.heard = version
    assert led.term.batches.begun  # binds that were asked for are no reason to wait
    led.term.hear([Answered(led.term.state.results.read("0", 1.0))])
    led.term.batches.finish()
    led.run()
    check.at_rest()
