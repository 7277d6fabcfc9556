"""What the scheduler writes about pods: conditions, nominated nodes, events; and deleting them."""

import pytest

from dsched.cluster.interface import Change, PodEvent, SchedulingStatus
from dsched.cluster.standalone.objects import Objects
from dsched.errors import ClusterError
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey, PodUid
from tests.manifests import node_manifest, pod_manifest

WEB = PodKey("default/web")
NO_NODE = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.fixture
def uid(cluster, apply) -> PodUid:
    """Of a pending pod."""
    apply(node_manifest(), pod_manifest())
    return cluster.get_pods([WEB])[0].uid


def status(uid: str, message: str = NO_NODE, nominated: str | None = None) -> SchedulingStatus:
    return SchedulingStatus(
        WEB, PodUid(uid), "Unschedulable", message, None if nominated is None else NodeName(nominated)
    )


def shown(store) -> dict:
    (value,) = Objects(store).get(kinds.POD, [WEB])
    return value


def test_a_condition_is_written_and_read(store, cluster, uid):
    cluster.report([status(uid)])
    (pod,) = cluster.get_pods([WEB])
    (condition,) = pod.status.conditions
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "PodScheduled",
        "False",
        "Unschedulable",
        NO_NODE,
    )
    assert shown(store)["status"] == {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": "2023-11-14T22:13:20Z",
                "reason": "Unschedulable",
                "message": NO_NODE,
            }
        ],
    }


def test_a_bound_pod_is_shown_scheduled(store, cluster, uid, reserve):
    cluster.bind([reserve()])
    value = shown(store)
    assert value["spec"]["nodeName"] == "n1"
    assert value["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}
    ]


def event(uid: str, message: str, reason: str = "FailedScheduling") -> PodEvent:
    return PodEvent(WEB, PodUid(uid), "Warning", reason, message)


def test_repeats_of_the_newest_event_are_counted(store, cluster, clock, uid):
    start = clock.now_ms()
    cluster.record([event(uid, "a: 1 node(s) didn't match"), event(uid, "a: 1 node(s) didn't match")])
    clock.advance(5)
    cluster.record([event(uid, "a: 1 node(s) didn't match"), event(uid, "b")])
    cluster.record([event(uid, "a: 1 node(s) didn't match")])
    found = [
        (each.count, each.first_ms - start, each.last_ms - start, each.message) for each in Objects(store).events(WEB)
    ]
    assert found == [
        (1, 5000, 5000, "a: 1 node(s) didn't match"),
        (1, 5000, 5000, "b"),
        (3, 0, 5000, "a: 1 node(s) didn't match"),
    ]


def test_the_newest_twenty_events_are_kept_for_an_hour(store, cluster, uid):
    cluster.record([event(uid, f"message {number}") for number in range(25)])
    found = Objects(store).events(WEB)
    assert [each.message for each in found] == [f"message {number}" for number in range(24, 4, -1)]
    assert 3500 < store.redis.ttl(store.key("cluster:events:default/web")) <= 3600


def test_events_of_pods_that_are_gone_are_passed_over(store, cluster, uid):
    cluster.record([event("dead", "x"), PodEvent(PodKey("default/none"), PodUid("u"), "Normal", "A", "x")])
    assert Objects(store).events(WEB) == []
    assert not store.redis.exists(store.key("cluster:events:default/none"))


def test_a_reason_is_one_word(cluster, uid):
    with pytest.raises(ClusterError, match="one word each"):
        cluster.record([event(uid, "x", reason="Failed Scheduling")])


def test_deleting_takes_everything_along(store, cluster, uid):
    cluster.report([status(uid)])
    cluster.record([event(uid, "x")])
    version = cluster.newest_version()
    cluster.delete_pods([(WEB, uid), (PodKey("default/none"), uid)], "PreemptionByScheduler", "preempted")
    assert cluster.get_pods([WEB]) == [None]
    (deleted,), _ = cluster.watch(version, 0)
    assert (deleted.change, deleted.key, deleted.uid) == (Change.DELETED, WEB, uid)
    left = {key.decode().removeprefix(store.key("")) for key in store.redis.scan_iter(store.key("*"))}
    assert left == {"cluster:id", "cluster:version", "cluster:log", "cluster:nodes"}
