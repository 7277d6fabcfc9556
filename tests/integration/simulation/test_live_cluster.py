"""The running system's cluster, read from Redis."""

from pathlib import Path

import pytest

from dsched.cluster.interface import Binding, SchedulingStatus
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.config.feature_gates import NEWEST, features
from dsched.errors import NotFound
from dsched.framework import deferred_resizes
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.simulation import live_cluster
from dsched.simulation.live_cluster import LiveCluster
from dsched.state.client import Store
from tests.manifests import apply, node_manifest, other_manifest, pod_manifest

SCHEDULERS = ("default-scheduler",)


def read(store: Store, key: str) -> LiveCluster:
    return live_cluster.read(store, StandaloneCluster(store), PodKey(key), SCHEDULERS)


def reserve(store: Store, key: str, node: str) -> PodUid:
    """Note a reservation as the leader's script does."""
    (pod,) = StandaloneCluster(store).get_pods([PodKey(key)])
    assert pod is not None
    store.redis.hset(store.key("reservations"), pod.uid, f"{key} {node} 1 binding 1 1")
    return pod.uid


def bind(store: Store, key: str, node: str) -> None:
    uid = reserve(store, key, node)
    StandaloneCluster(store).bind([Binding(PodKey(key), uid, NodeName(node), 1)])
    store.redis.hdel(store.key("reservations"), uid)


def promise(store: Store, key: str, node: str) -> None:
    cluster = StandaloneCluster(store)
    (pod,) = cluster.get_pods([PodKey(key)])
    assert pod is not None
    cluster.report([SchedulingStatus(PodKey(key), pod.uid, "Unschedulable", "full", nominated=NodeName(node))])


def placed(standing: LiveCluster) -> dict[str, str]:
    return {pod.key: node for node, pod in standing.memory.snapshot.table.placed()}


def test_a_deferred_resize_is_looked_at_on_its_node(store: Store, tmp_path: Path) -> None:
    pod = pod_manifest("shop/web", nodeName="n1")
    pod["status"] = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
    apply(store, tmp_path, node_manifest("n1"), pod)
    on = features(NEWEST, {deferred_resizes.GATE: True})
    found = live_cluster.read(store, StandaloneCluster(store), PodKey("shop/web"), SCHEDULERS, on)
    assert (found.node, found.pod.node_name, found.resizes) == ("n1", "n1", True)
    assert placed(found) == {"shop/web": "n1"}
    off = read(store, "shop/web")
    assert (off.node, off.pod.node_name, off.resizes) == ("n1", "", False)
    assert placed(off) == {}


def test_bound_reserved_and_promised_pods_count(store: Store, tmp_path: Path) -> None:
    apply(
        store,
        tmp_path,
        node_manifest("n2"),
        node_manifest("n1"),
        other_manifest("Namespace", "v1", "shop"),
        pod_manifest("shop/web"),
        pod_manifest("shop/bound"),
        pod_manifest("shop/reserved"),
        pod_manifest("shop/promised"),
        pod_manifest("shop/other", schedulerName="other"),
        pod_manifest("shop/waits"),
        {**pod_manifest("shop/ended", nodeName="n1"), "status": {"phase": "Succeeded"}},
    )
    bind(store, "shop/bound", "n1")
    reserve(store, "shop/reserved", "n2")
    promise(store, "shop/promised", "n1")
    promise(store, "shop/other", "n1")
    standing = read(store, "shop/web")
    snapshot = standing.memory.snapshot
    assert snapshot.table.names == ["n1", "n2"]
    assert placed(standing) == {"shop/bound": "n1", "shop/reserved": "n2"}
    assert [pod.key for pod in snapshot.nominations.on(NodeName("n1"))] == ["shop/promised"]
    assert list(snapshot.others("Namespace")) == ["shop"]
    assert sorted(pod.key for pod, _ in standing.pending) == ["shop/promised", "shop/reserved", "shop/waits"]
    assert (standing.pod.key, standing.node, standing.reserved, standing.attempts) == ("shop/web", "", "", 0)


def test_a_bound_pod_is_taken_off_its_node(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest(), pod_manifest("shop/web"), pod_manifest("shop/other"))
    bind(store, "shop/web", "n1")
    bind(store, "shop/other", "n1")
    standing = read(store, "shop/web")
    assert (standing.node, standing.pod.node_name) == ("n1", "")
    assert placed(standing) == {"shop/other": "n1"}


def test_a_reserved_pod_is_taken_off_its_node(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest(), pod_manifest("shop/web"))
    reserve(store, "shop/web", "n1")
    standing = read(store, "shop/web")
    assert (standing.node, standing.reserved, placed(standing)) == ("", "n1", {})


def test_the_pods_own_promise_and_attempts_are_known(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest(), pod_manifest("shop/web", uid="u-1"))
    promise(store, "shop/web", "n1")
    store.redis.hset(store.key("pod:shop/web"), mapping={"uid": "u-1", "attempts": 3})
    standing = read(store, "shop/web")
    assert standing.memory.snapshot.nominations.node_of(PodUid("u-1")) == "n1"
    assert standing.attempts == 3
    apply(store, tmp_path, pod_manifest("shop/other"))
    ((pod, record),) = read(store, "shop/other").pending
    assert (pod.key, record.attempts if record else None) == ("shop/web", 3)


def test_attempts_of_an_earlier_pod_of_that_name_do_not_count(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, pod_manifest("shop/web", uid="u-2"))
    store.redis.hset(store.key("pod:shop/web"), mapping={"uid": "u-1", "attempts": 3})
    assert read(store, "shop/web").attempts == 0


def test_a_pod_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFound, match="there is no pod shop/web"):
        read(store, "shop/web")
