"""Pod groups and queues: listed and watched where they are asked for, and told what came of them."""

from typing import Any

import pytest

from dsched.cluster.interface import Change, GroupStatus
from dsched.manifests import kinds
from dsched.model.coscheduling import LABEL
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey
from dsched.model.queues import QueueStatus
from tests.contract.systems import System
from tests.integration.cluster.watching import Watcher
from tests.manifests import Json, group_manifest, pod_manifest, queue_manifest

TRAIN = GroupKey("default/train")
BUSY = QueueStatus({"cpu": "1500m", "memory": "1Gi"}, {"cpu": "2"}, pending_pods=3)


@pytest.fixture(autouse=True)
def heard(system: System) -> Watcher:
    """Of a leader that schedules both."""
    system.put(group_manifest(TRAIN), queue_manifest(weight=2))
    system.lead(groups=True, queues=True)
    return system.listed()


class TestGroups:
    @pytest.fixture
    def uid(self, system: System) -> str:
        return str(system.there(kinds.POD_GROUP, TRAIN)["metadata"]["uid"])

    def status(self, uid: str, scheduled: bool = False, message: str = "no", generation: int = 0) -> GroupStatus:
        reason = "Scheduled" if scheduled else "Unschedulable"
        return GroupStatus(TRAIN, uid, scheduled, reason, message, generation)

    def report(self, system: System, *statuses: GroupStatus) -> None:
        system.cluster.report_groups(statuses)
        system.settle()

    def condition(self, system: System) -> Json:
        (found,) = system.there(kinds.POD_GROUP, TRAIN)["status"]["conditions"]
        return dict(found)

    def test_they_are_listed_and_watched(self, system: System, heard: Watcher) -> None:
        assert [each["metadata"]["name"] for each in heard.listing.others["PodGroup"]] == ["train"]
        system.put(group_manifest("default/more"))
        came = heard.wait_for(Change.ADDED, "PodGroup", "default/more")
        assert came.object is not None and came.object["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
        system.delete(kinds.POD_GROUP, "default/more")
        assert heard.wait_for(Change.DELETED, "PodGroup", "default/more").uid == came.uid

    def test_what_came_of_a_group_stands_on_it_and_is_told(self, system: System, heard: Watcher, uid: str) -> None:
        spec = system.there(kinds.POD_GROUP, TRAIN)["spec"]
        self.report(system, self.status(uid, generation=4))
        said = self.condition(system)
        assert said.pop("lastTransitionTime")
        assert said == {
            "type": "PodGroupInitiallyScheduled",
            "status": "False",
            "observedGeneration": 4,
            "reason": "Unschedulable",
            "message": "no",
        }
        assert system.there(kinds.POD_GROUP, TRAIN)["spec"] == spec
        told = heard.wait_for(Change.MODIFIED, "PodGroup", TRAIN)
        assert told.object is not None
        assert told.object["status"] == system.there(kinds.POD_GROUP, TRAIN)["status"]

    def test_another_message_keeps_the_time_and_another_status_does_not_undo_it(self, system: System, uid: str) -> None:
        self.report(system, self.status(uid))
        first = self.condition(system)
        system.later()
        self.report(system, self.status(uid, message="second"))
        assert self.condition(system) == {**first, "message": "second"}
        self.report(system, self.status(uid, scheduled=True, message=""))
        last = self.condition(system)
        assert (last["status"], last["reason"]) == ("True", "Scheduled")
        self.report(system, self.status(uid))
        assert self.condition(system) == last

    def test_what_was_scheduled_once_stays_so_where_it_is_said_at_once(self, system: System, uid: str) -> None:
        said = [self.status(uid), self.status(uid, scheduled=True, message=""), self.status(uid)]
        self.report(system, *said)
        assert (self.condition(system)["status"], self.condition(system)["reason"]) == ("True", "Scheduled")

    def test_the_same_word_again_is_no_change(self, system: System, uid: str) -> None:
        self.report(system, self.status(uid))
        before = system.there(kinds.POD_GROUP, TRAIN)
        system.later()
        self.report(system, self.status(uid), self.status(uid))
        self.report(system, self.status(uid))
        assert system.there(kinds.POD_GROUP, TRAIN) == before

    def test_groups_that_are_gone_or_others_are_passed_over(self, system: System, uid: str) -> None:
        before = system.there(kinds.POD_GROUP, TRAIN)
        none = GroupStatus(GroupKey("default/none"), uid, True, "Scheduled", "")
        self.report(system, self.status("another", scheduled=True), none)
        assert system.there(kinds.POD_GROUP, TRAIN) == before
        assert system.read(kinds.POD_GROUP, "default/none") is None

    def test_other_conditions_stay(self, system: System, uid: str) -> None:
        other = {"type": "example.com/Seen", "status": "True", "reason": "Itself", "message": ""}
        system.amend(kinds.POD_GROUP, TRAIN, status={"conditions": [other]})
        self.report(system, self.status(uid))
        found = system.there(kinds.POD_GROUP, TRAIN)["status"]["conditions"]
        assert [each["type"] for each in found] == ["example.com/Seen", "PodGroupInitiallyScheduled"]
        assert found[0] == other


class TestQueues:
    def queue(self, system: System, name: str = "train") -> Json:
        return system.there(kinds.QUEUE, name)

    def report(self, system: System, **statuses: QueueStatus) -> None:
        system.cluster.report_queues(statuses)
        system.settle()

    def test_they_are_listed_and_watched(self, system: System, heard: Watcher) -> None:
        assert [each["spec"] for each in heard.listing.others["Queue"]] == [{"weight": 2}]
        system.put(queue_manifest("more"))
        assert heard.wait_for(Change.ADDED, "Queue", "more").object is not None
        system.put(queue_manifest("more", weight=5))
        changed = heard.wait_for(Change.MODIFIED, "Queue", "more")
        assert changed.object is not None and changed.object["spec"] == {"weight": 5}
        system.delete(kinds.QUEUE, "more")
        assert heard.wait_for(Change.DELETED, "Queue", "more").uid == changed.uid

    def test_a_status_stands_on_its_queue_whole_and_is_told(self, system: System, heard: Watcher) -> None:
        self.report(system, train=BUSY, none=BUSY)
        found = self.queue(system)
        assert found["spec"] == {"weight": 2}
        assert found["status"] == {
            "usage": {"cpu": "1500m", "memory": "1Gi"},
            "fairShare": {"cpu": "2"},
            "pendingPods": 3,
        }
        assert system.read(kinds.QUEUE, "none") is None
        told = heard.wait_for(Change.MODIFIED, "Queue", "train")
        assert told.object is not None and told.object["status"] == found["status"]
        self.report(system, train=QueueStatus({"cpu": "1"}))
        assert self.queue(system)["status"] == {"usage": {"cpu": "1"}}

    def test_nothing_is_written_where_nothing_has_changed(self, system: System) -> None:
        system.put(queue_manifest("idle"))
        heard = system.listed()
        self.report(system, train=BUSY, idle=QueueStatus())
        heard.wait_for(Change.MODIFIED, "Queue", "train")
        before = [self.queue(system, name) for name in ("train", "idle")]
        self.report(system, train=BUSY, idle=QueueStatus())
        self.report(system)
        assert [self.queue(system, name) for name in ("train", "idle")] == before
        assert "status" not in before[1]

    def test_the_spec_may_change_meanwhile(self, system: System, heard: Watcher) -> None:
        self.report(system, train=BUSY)
        system.put(queue_manifest(weight=3))
        self.report(system, train=QueueStatus(pending_pods=4))
        found = self.queue(system)
        assert (found["spec"], found["status"]) == ({"weight": 3}, {"pendingPods": 4})


class TestCoscheduling:
    def pod(self, name: str, **labels: str) -> Json:
        return pod_manifest(f"default/{name}", labels=labels)

    def read(self, system: System, key: str) -> Any:
        (pod,) = system.cluster.get_pods([PodKey(key)])
        assert pod is not None
        return pod.group_key

    def test_labels_of_scheduler_plugins_are_read_as_groups_where_that_is_asked_for(self, system: System) -> None:
        labels = {LABEL: "train"}
        system.put(self.pod("a", **labels), self.pod("plain"))
        assert {pod.key: pod.group_key for pod in system.cluster.list().pods} == {"default/a": "", "default/plain": ""}
        assert self.read(system, "default/a") == ""
        system.lead(groups=True, coscheduling=True)
        heard = system.listed()
        assert {pod.key: pod.group_key for pod in heard.listing.pods} == {"default/a": TRAIN, "default/plain": ""}
        assert self.read(system, "default/a") == TRAIN
        system.put(self.pod("b", **labels))
        pod = heard.wait_for(Change.ADDED, "Pod", "default/b").object
        assert isinstance(pod, Pod) and pod.group_key == TRAIN
