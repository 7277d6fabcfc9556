"""Queues as standalone mode keeps them: applied, changed, watched, deleted; only as the forest that they have to be."""

from typing import Any

import pytest

from dsched.cluster.interface import Change
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.objects import Objects
from dsched.cluster.standalone.statuses import StatusWriter
from dsched.errors import ClusterError, ManifestError
from dsched.manifests import kinds
from dsched.model.queues import QueueStatus
from tests.manifests import guaranteed, queue_manifest

QUEUE = kinds.QUEUE
BUSY = QueueStatus({"cpu": "1500m"}, {"cpu": "2"}, pending_pods=3)


def stored(store, name: str = "train") -> Any:
    (value,) = Objects(store).get(QUEUE, [name])
    return value


def test_a_child_may_stand_before_its_parent(store, cluster, apply):
    version = cluster.newest_version()
    apply(queue_manifest("train", "ml", weight=2), queue_manifest("ml"))
    assert sorted(each["metadata"]["name"] for each in cluster.list().others["Queue"]) == ["ml", "train"]
    events, _ = cluster.watch(version, 0)
    assert {(each.change, each.kind, each.key) for each in events} == {
        (Change.ADDED, "Queue", "train"),
        (Change.ADDED, "Queue", "ml"),
    }


def test_a_queue_may_change_and_its_status_is_not_the_manifests(store, apply):
    apply({**queue_manifest(), "status": {"pendingPods": 3}})
    assert "status" not in stored(store)
    assert apply({**queue_manifest(), "status": {"pendingPods": 3}})[0].outcome == "unchanged"
    assert apply(queue_manifest(weight=3))[0].outcome == "configured"
    assert stored(store)["spec"] == {"weight": 3}


def test_what_is_there_already_counts(store, apply):
    apply(queue_manifest("ml", resources=guaranteed(cpu=10)), queue_manifest("a", "ml", resources=guaranteed(cpu=6)))
    with pytest.raises(ManifestError, match=r"spec.resources.cpu.guaranteed: children of queue .ml. are guaranteed"):
        apply(queue_manifest("b", "ml", resources=guaranteed(cpu=5)))
    with pytest.raises(ManifestError, match=r'spec.parent: "a" is below it: ml > a > ml'):
        apply(queue_manifest("ml", "a"))
    with pytest.raises(ManifestError, match=r'spec.parent: there is no queue "none"; apply it first'):
        apply(queue_manifest("c", "none"), queue_manifest("d"))
    assert stored(store, "d") is None
    apply(queue_manifest("ml", resources=guaranteed(cpu=11)), queue_manifest("b", "ml", resources=guaranteed(cpu=5)))


def test_a_parent_is_deleted_with_its_children_only(store, apply):
    apply(queue_manifest("ml"), queue_manifest("a", "ml"))
    with pytest.raises(ClusterError, match="queue ml is the parent of a: delete these first or with it; nothing was"):
        Applier(store).delete(QUEUE, ["ml"])
    assert stored(store, "ml") is not None
    assert Applier(store).delete(QUEUE, ["ml", "a", "none"]) == [True, True, False]


def test_a_status_is_written_and_told_to_watchers(store, cluster, apply):
    apply(queue_manifest(weight=2), queue_manifest("other"))
    version = cluster.newest_version()
    cluster.report_queues({"train": BUSY, "none": BUSY})
    found = stored(store)
    assert found["spec"] == {"weight": 2}
    assert found["status"] == {"usage": {"cpu": "1500m"}, "fairShare": {"cpu": "2"}, "pendingPods": 3}
    (event,), _ = cluster.watch(version, 0)
    assert (event.change, event.kind, event.key) == (Change.MODIFIED, "Queue", "train")
    assert event.object == found
    apply(queue_manifest(weight=3))
    assert stored(store)["status"] == found["status"]


def test_a_queue_that_changed_meanwhile_keeps_the_change(store, cluster, apply, monkeypatch):
    apply(queue_manifest())
    read, weights = StatusWriter._read, [2, 3]

    def changed_after(self, wanted):
        found = read(self, wanted)
        if weights:
            apply(queue_manifest(weight=weights.pop(0)))
        return found

    monkeypatch.setattr(StatusWriter, "_read", changed_after)
    cluster.report_queues({"train": BUSY})
    assert (weights, stored(store)["spec"], stored(store)["status"]["pendingPods"]) == ([], {"weight": 3}, 3)
