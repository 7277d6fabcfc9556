"""What manifests give."""

from pathlib import Path
from typing import Any

import pytest

from dsched.errors import ManifestError
from dsched.framework.snapshot import Snapshot
from dsched.simulation.from_manifests import ManifestCluster, given
from tests.manifests import loaded, node_manifest, other_manifest, pod_manifest

NOW_MS = 1_700_000_000_000
Json = dict[str, Any]


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(*objects: Json) -> ManifestCluster:
        return given(loaded(tmp_path, *objects), NOW_MS)

    return read


def created(manifest: Json, when: str) -> Json:
    return {**manifest, "metadata": {**manifest["metadata"], "creationTimestamp": when}}


def with_status(manifest: Json, **status: Any) -> Json:
    return {**manifest, "status": status}


def test_pods_are_sorted_out(read: Any) -> None:
    deleted = pod_manifest("shop/deleted")
    deleted["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    found = read(
        pod_manifest("shop/waits"),
        pod_manifest("shop/there", nodeName="n1"),
        with_status(pod_manifest("shop/ended", nodeName="n1"), phase="Succeeded"),
        with_status(pod_manifest("shop/never"), phase="Failed"),
        deleted,
    )
    assert [pod.key for pod in found.bound] == ["shop/there"]
    assert [pod.key for pod in found.pending] == ["shop/waits"]


def test_the_oldest_pod_comes_first_and_those_without_a_time_last(read: Any) -> None:
    found = read(
        pod_manifest("shop/new-1"),
        created(pod_manifest("shop/younger"), "2023-02-01T00:00:00Z"),
        created(pod_manifest("shop/older"), "2023-01-01T00:00:00Z"),
        pod_manifest("shop/new-2"),
    )
    assert [pod.key for pod in found.pending] == ["shop/older", "shop/younger", "shop/new-1", "shop/new-2"]


def test_a_uid_depends_on_the_name_alone(read: Any) -> None:
    (first,) = read(pod_manifest("shop/web")).pending
    again, other, named = read(
        pod_manifest("shop/web"), pod_manifest("shop/db"), pod_manifest("shop/c", uid="u-1")
    ).pending
    assert first.uid == again.uid
    assert len({again.uid, other.uid, "u-1"}) == 3
    assert named.uid == "u-1"


def test_a_uid_that_two_pods_have_is_refused(read: Any) -> None:
    with pytest.raises(ManifestError, match=r'items\[1\]: metadata.uid: "u-1" is the UID of pod shop/web too'):
        read(pod_manifest("shop/web", uid="u-1"), pod_manifest("shop/db", uid="u-1"))


def test_priorities_come_from_their_classes(read: Any) -> None:
    high = other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=1000)
    (pod,) = read(pod_manifest(priorityClassName="high"), high).pending
    assert pod.spec.priority == 1000
    with pytest.raises(ManifestError, match='there is no PriorityClass "low"'):
        read(pod_manifest(priorityClassName="low"))


def test_it_fills_a_snapshot(read: Any) -> None:
    snapshot = Snapshot()
    read(
        node_manifest("n2"),
        node_manifest("n1"),
        pod_manifest("shop/there", nodeName="n1"),
        pod_manifest("shop/waits"),
        other_manifest("Namespace", "v1", "shop"),
    ).fill(snapshot)
    assert snapshot.table.names == ["n1", "n2"]
    assert [(node, pod.key) for node, pod in snapshot.table.placed()] == [("n1", "shop/there")]
    assert list(snapshot.others("Namespace")) == ["shop"]


def test_labels_of_scheduler_plugins_are_read_as_groups_where_that_is_asked_for(read: Any) -> None:
    waits, there = pod_manifest("shop/waits"), pod_manifest("shop/there", nodeName="n1")
    for pod in (waits, there):
        pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "train"}
    found = read(waits, there)
    assert [pod.group_key for pod in (*found.bound, *found.pending)] == ["", ""]
    asked = found.coscheduled()
    assert [pod.group_key for pod in (*asked.bound, *asked.pending)] == ["shop/train", "shop/train"]
