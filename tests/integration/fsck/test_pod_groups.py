"""Inspections of pod groups, as the real scripts leave them."""

import pytest

from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import Move, QueueName
from dsched.state import keys
from tests.integration.fsck.by_hand import ByHand
from tests.manifests import group_manifest, node_manifest, pod_manifest

GROUP = "default/train"
ENTITY = PodKey(f"podgroup/{GROUP}")


@pytest.fixture
def gang(system: ByHand) -> ByHand:
    """A gang of two, ``a`` and ``b``, in the active queue."""
    pods = [pod_manifest(f"default/{name}", schedulingGroup={"podGroupName": "train"}) for name in "ab"]
    system.apply(node_manifest("n1"), group_manifest(GROUP), *pods)
    system.take_in()
    stand(system, "a", QueueName.ACTIVE, QueueName.GROUP)
    stand(system, "b", QueueName.ACTIVE, QueueName.GROUP)
    enter(system, QueueName.NOWHERE, QueueName.ACTIVE)
    return system


def stand(system: ByHand, name: str, source: QueueName, target: QueueName, **fields: int) -> None:
    """Move a pod of the group."""
    pod, now_ms = system.pod(name), system.clock.now_ms()
    written = {"group": GROUP, "queued_us": now_ms, **fields}
    assert system.queue.move([Move(pod.key, pod.uid, source, target, now_ms, GROUP, now_ms, written)]) == []


def uid(system: ByHand) -> PodUid:
    """Of the group."""
    (found,) = system.cluster.list().others[kinds.POD_GROUP.name]
    return PodUid(found["metadata"]["uid"])


def enter(system: ByHand, source: QueueName, target: QueueName) -> None:
    """Move the group."""
    move = Move(ENTITY, uid(system), source, target, 0, "turn", 0, {"queued_us": 1, "profile": "default-scheduler"})
    assert system.queue.move([move]) == []


def take_along(system: ByHand, *names: str) -> None:
    """What a leader does with the pods of a group that was popped."""
    now_ms = system.clock.now_ms()
    for name in names:
        stand(system, name, QueueName.GROUP, QueueName.INFLIGHT, attempts=1, first_ms=now_ms, last_ms=now_ms)


def test_every_step_of_a_gang_is_clean(gang: ByHand) -> None:
    assert gang.breaches() == []
    gang.pop()
    assert gang.breaches() == []
    take_along(gang, "a", "b")
    assert gang.breaches() == []
    gang.reserve("a")
    gang.reserve("b")
    gang.queue.remove([(ENTITY, uid(gang))])
    assert gang.breaches() == []
    for name in "ab":
        gang.bind(name)
        gang.confirm(name)
    report = gang.inspect()
    assert report.view.at_rest and not report.breaches and not report.notes


def test_a_gang_of_which_one_pod_is_bound_alone_is_noted(gang: ByHand) -> None:
    gang.pop()
    take_along(gang, "a", "b")
    gang.reserve("a")
    stand(gang, "b", QueueName.INFLIGHT, QueueName.GROUP)
    enter(gang, QueueName.INFLIGHT, QueueName.BACKOFF)
    gang.bind("a")
    gang.confirm("a")
    report = gang.inspect()
    assert list(report.breaches) == []
    assert [str(note).partition(",")[0] for note in report.notes] == ["I13 default/train: 1 of its pods have nodes"]


def test_a_group_that_is_gone_and_one_that_is_lost(gang: ByHand) -> None:
    gang.delete(kinds.POD_GROUP, GROUP)
    assert gang.breaches() == [f"I1 {ENTITY}: has a record, and there is no such pod group"]
    gang.store.redis.delete(gang.key(keys.POD.name + ENTITY), gang.key(keys.ACTIVE.name))
    lost = [f"I1 default/{name}: stands beside pod group {GROUP}, which is not in the queue" for name in "ab"]
    assert gang.breaches() == lost


def test_pods_that_are_lost_beside_their_group(gang: ByHand) -> None:
    gang.store.redis.zrem(gang.key(keys.GROUP.name), f"{GROUP} default/a")
    assert gang.breaches() == ["I1 default/a: its record says group, but it stands nowhere"]
    gang.store.redis.delete(gang.key(keys.POD.name + "default/a"), gang.key(keys.POD.name + "default/b"))
    assert gang.breaches() == [
        "I1 default/a: is pending and stands nowhere",
        "I1 default/b: stands in group and has no record",
        f"I1 {ENTITY}: stands in active, and no pod stands beside it",
    ]


def test_what_a_leader_puts_right_meanwhile_is_no_breach(gang: ByHand) -> None:
    gang.pop()
    gang.lead()
    assert gang.breaches(meanwhile=gang.queue.recover) == []
    assert gang.store.redis.zcard(gang.key(keys.GROUP.name)) == 2


def test_a_pod_released_into_its_group(gang: ByHand) -> None:
    gang.pop()
    take_along(gang, "a", "b")
    gang.reserve("a")
    stand(gang, "b", QueueName.INFLIGHT, QueueName.GROUP)
    enter(gang, QueueName.INFLIGHT, QueueName.BACKOFF)
    pod, now_ms = gang.pod("a"), gang.clock.now_ms()
    move = Move(pod.key, pod.uid, QueueName.RESERVED, QueueName.GROUP, now_ms, GROUP, now_ms, {"group": GROUP})
    assert gang.reservations.release([(move, NodeName("n1"), {"cpu": 100, "pods": 1})]) == [True]
    assert gang.breaches() == []
