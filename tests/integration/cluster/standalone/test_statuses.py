"""Pod groups as standalone mode keeps them: applied, changed, watched, deleted, and told what came of them."""

import json
from typing import Any

import pytest

from dsched.cluster.interface import Change, GroupStatus
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.objects import Objects
from dsched.cluster.standalone.statuses import ATTEMPTS, StatusWriter
from dsched.errors import ManifestError
from dsched.manifests import kinds
from dsched.model.pod_groups import GroupKey
from tests.manifests import group_manifest, other_manifest

GROUP = kinds.POD_GROUP


def stored(store) -> Any:
    (value,) = Objects(store).get(GROUP, ["default/train"])
    return value


def test_a_group_is_listed_and_watched(store, cluster, apply):
    version = cluster.newest_version()
    apply(group_manifest())
    assert [each["metadata"]["name"] for each in cluster.list().others["PodGroup"]] == ["train"]
    (event,), version = cluster.watch(version, 0)
    assert (event.change, event.kind, event.key) == (Change.ADDED, "PodGroup", "default/train")
    assert event.object["spec"]["disruptionMode"] == {"single": {}}
    Applier(store).delete(GROUP, ["default/train"])
    (event,), _ = cluster.watch(version, 0)
    assert (event.change, event.key) == (Change.DELETED, "default/train")


def test_its_class_gives_the_priority(store, apply):
    high = other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=1000)
    apply(group_manifest(priorityClassName="high"), high)
    spec = stored(store)["spec"]
    assert (spec["priority"], "preemptionPolicy" in spec) == (1000, False)


def test_min_count_may_change_and_nothing_else(store, apply):
    apply(group_manifest())
    assert apply(group_manifest(min_count=3))[0].outcome == "configured"
    assert apply(group_manifest(min_count=3))[0].outcome == "unchanged"
    with pytest.raises(ManifestError, match=r"immutable except for spec.schedulingPolicy.gang.minCount \(changed: pri"):
        apply(group_manifest(min_count=4, priority=5))
    assert stored(store)["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}


def test_a_manifest_says_nothing_of_the_status(store, apply):
    scheduled = {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled"}]}
    apply({**group_manifest(), "status": scheduled})
    assert "status" not in stored(store)
    assert apply({**group_manifest(), "status": scheduled})[0].outcome == "unchanged"


def status(uid: str, scheduled: bool = False, message: str = "no", key: str = "default/train") -> GroupStatus:
    return GroupStatus(GroupKey(key), uid, scheduled, "Scheduled" if scheduled else "Unschedulable", message)


@pytest.fixture
def uid(store, apply) -> str:
    """Of a group."""
    apply(group_manifest())
    return stored(store)["metadata"]["uid"]


def test_a_condition_is_written_and_told_to_watchers(store, cluster, uid):
    version = cluster.newest_version()
    cluster.report_groups([status(uid)])
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "False",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
        "reason": "Unschedulable",
        "message": "no",
    }
    found = stored(store)
    assert found["status"] == {"conditions": [condition]}
    assert found["spec"]["disruptionMode"] == {"single": {}}
    (event,), _ = cluster.watch(version, 0)
    assert (event.change, event.kind, event.key, event.uid) == (Change.MODIFIED, "PodGroup", "default/train", uid)
    assert event.object == found


def test_the_condition_stays_when_the_group_is_applied_again(store, cluster, apply, uid):
    cluster.report_groups([status(uid)])
    apply(group_manifest(min_count=3))
    assert stored(store)["status"]["conditions"][0]["message"] == "no"


@pytest.fixture
def counts(apply, monkeypatch) -> list[int]:
    """What the group's minCount is set to after the writer has read it, the first of them each time."""
    read, given = StatusWriter._read, list[int]()

    def changed_after(self, wanted):
        found = read(self, wanted)
        if given:
            apply(group_manifest(min_count=given.pop(0)))
        return found

    monkeypatch.setattr(StatusWriter, "_read", changed_after)
    return given


def test_a_group_that_changes_all_the_time_is_told_in_the_log(store, cluster, apply, uid, counts, caplog):
    apply(group_manifest("default/other"))
    counts += [3, 4] * ATTEMPTS
    (other,) = Objects(store).get(GROUP, ["default/other"])
    cluster.report_groups([status(uid), status(other["metadata"]["uid"], key="default/other")])
    assert "status" not in stored(store)
    assert Objects(store).get(GROUP, ["default/other"])[0]["status"]["conditions"]
    (line,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert (line.action, line.kind, line.key) == ("report_status", "PodGroup", "default/train")


def test_a_group_that_changed_meanwhile_is_looked_at_again(store, cluster, uid, counts):
    counts += [4, 3]
    cluster.report_groups([status(uid)])
    found = stored(store)
    assert (counts, found["spec"]["schedulingPolicy"]) == ([], {"gang": {"minCount": 3}})
    assert found["status"]["conditions"][0]["message"] == "no"


@pytest.mark.parametrize("write", [json.dumps, lambda value: json.dumps(dict(reversed(value.items())), indent=1)])
def test_what_somebody_else_has_written_is_told_changed_and_deleted_as_any_other(store, cluster, apply, uid, write):
    store.redis.hset(store.key("cluster:podgroups"), "default/train", write(stored(store)))
    cluster.report_groups([status(uid, message="no room")])
    assert stored(store)["status"]["conditions"][0]["message"] == "no room"
    store.redis.hset(store.key("cluster:podgroups"), "default/train", write(stored(store)))
    assert apply(group_manifest(min_count=3))[0].outcome == "configured"
    store.redis.hset(store.key("cluster:podgroups"), "default/train", write(stored(store)))
    version = cluster.newest_version()
    Applier(store).delete(GROUP, ["default/train"])
    (event,), _ = cluster.watch(version, 0)
    assert (event.change, event.uid) == (Change.DELETED, uid)


def test_one_without_a_uid_is_passed_over(store, cluster, uid):
    value = stored(store)
    del value["metadata"]["uid"]
    store.redis.hset(store.key("cluster:podgroups"), "default/train", json.dumps(value))
    cluster.report_groups([status(uid), status("")])
    assert cluster.list().others["PodGroup"] == []
