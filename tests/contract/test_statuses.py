"""What is written about pods that wait: conditions, promises, events; and pods that are deleted."""

from typing import Any

import pytest

from dsched.cluster.interface import Change, PodEvent, SchedulingStatus
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey, PodUid
from tests.contract.systems import System, ToldEvent
from tests.manifests import Json, node_manifest, pod_manifest

WEB = PodKey("default/web")
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.fixture(autouse=True)
def uid(system: System) -> PodUid:
    """Of a pod that waits."""
    system.put(node_manifest(), pod_manifest(WEB))
    return system.uid(WEB)


def status(uid: str, message: str = NO_ROOM, nominated: str | None = None) -> SchedulingStatus:
    return SchedulingStatus(
        WEB, PodUid(uid), "Unschedulable", message, None if nominated is None else NodeName(nominated)
    )


def promise(uid: str, node: str) -> SchedulingStatus:
    """Nothing but the nominated node; ``""`` takes it back."""
    return SchedulingStatus(WEB, PodUid(uid), "", "", NodeName(node))


def report(system: System, *statuses: SchedulingStatus) -> None:
    system.cluster.report(statuses)
    system.settle()


def conditions(system: System) -> list[Json]:
    found: list[Json] = system.there(kinds.POD, WEB).get("status", {}).get("conditions", [])
    return found


def nominated(system: System) -> str:
    (pod,) = system.cluster.get_pods([WEB])
    assert pod is not None
    shown = system.there(kinds.POD, WEB).get("status", {}).get("nominatedNodeName", "")
    assert pod.status.nominated_node_name == shown
    return shown


class TestReporting:
    def test_why_a_pod_was_not_placed_stands_on_it(self, system: System, uid: PodUid) -> None:
        report(system, status(uid))
        (condition,) = conditions(system)
        assert condition.pop("lastTransitionTime")
        assert condition == {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": NO_ROOM,
        }
        (pod,) = system.cluster.get_pods([WEB])
        assert pod is not None
        (read,) = pod.status.conditions
        assert (read.type, read.status, read.reason, read.message) == tuple(condition.values())

    def test_the_same_status_again_is_no_change(self, system: System, uid: PodUid) -> None:
        report(system, status(uid, nominated="n1"))
        before = system.there(kinds.POD, WEB)
        system.later()
        report(system, status(uid, nominated="n1"), status(uid))
        report(system, status(uid))
        report(system, promise(uid, "n1"))
        assert system.there(kinds.POD, WEB) == before

    def test_another_message_keeps_the_time_of_the_first_refusal(self, system: System, uid: PodUid) -> None:
        report(system, status(uid))
        (first,) = conditions(system)
        system.later()
        report(system, status(uid, 'a "quoted" ünicode message'))
        (second,) = conditions(system)
        assert second == {**first, "message": 'a "quoted" ünicode message'}

    def test_the_newest_of_several_stands(self, system: System, uid: PodUid) -> None:
        report(system, status(uid, "first"), status(uid, "second"), status(uid, "third"))
        assert [each["message"] for each in conditions(system)] == ["third"]

    def test_other_conditions_and_fields_stay(self, system: System) -> None:
        gate = {"type": "example.com/Ready", "status": "True", "reason": "Itself"}
        pod = {**pod_manifest("default/odd"), "status": {"phase": "Pending", "conditions": [gate]}}
        system.put(pod)
        before = system.there(kinds.POD, "default/odd")
        odd = PodKey("default/odd")
        report(system, SchedulingStatus(odd, system.uid(odd), "Unschedulable", "no", NodeName("n1")))
        after = system.there(kinds.POD, odd)
        assert after["spec"] == before["spec"]
        assert [each["type"] for each in after["status"]["conditions"]] == ["example.com/Ready", "PodScheduled"]
        assert after["status"]["conditions"][0] == before["status"]["conditions"][0]

    def test_a_nominated_node_stays_until_it_is_cleared(self, system: System, uid: PodUid) -> None:
        report(system, status(uid, nominated="n1"))
        assert nominated(system) == "n1"
        report(system, status(uid, "another message"))
        assert nominated(system) == "n1"
        report(system, status(uid, nominated="n2"))
        assert nominated(system) == "n2"
        report(system, status(uid, nominated=""))
        assert nominated(system) == ""

    def test_a_manifests_nominated_node_stays_while_nothing_is_said_of_it(self, system: System) -> None:
        key = PodKey("default/promised")
        system.put({**pod_manifest(key), "status": {"nominatedNodeName": "n1"}})
        said = SchedulingStatus(key, system.uid(key), "Unschedulable", "no")

        def standing() -> str:
            (pod,) = system.cluster.get_pods([key])
            assert pod is not None
            return str(pod.status.nominated_node_name)

        report(system, said)
        assert standing() == "n1"
        report(system, SchedulingStatus(key, said.uid, "Unschedulable", "no", NodeName("")))
        assert standing() == ""

    def test_a_manifests_nominated_node_is_taken_back_of_a_pod_without_a_reason(self, system: System) -> None:
        """As a gated pod is, which nobody tries."""
        key = PodKey("default/promised")
        system.put({**pod_manifest(key), "status": {"nominatedNodeName": "n1"}})
        report(system, SchedulingStatus(key, system.uid(key), "", "", NodeName("")))
        (pod,) = system.cluster.get_pods([key])
        assert pod is not None
        assert pod.status.nominated_node_name == ""
        assert "nominatedNodeName" not in system.there(kinds.POD, key).get("status", {})

    def test_a_promise_is_taken_back_and_the_reason_stays(self, system: System, uid: PodUid) -> None:
        report(system, status(uid, nominated="n1"))
        report(system, promise(uid, ""))
        assert nominated(system) == ""
        assert [each["message"] for each in conditions(system)] == [NO_ROOM]

    def test_a_promise_of_a_pod_without_a_reason_is_written_alone(self, system: System, uid: PodUid) -> None:
        """Of a pod that is being bound: it has not failed."""
        report(system, promise(uid, "n1"))
        assert (nominated(system), conditions(system)) == ("n1", [])
        report(system, promise(uid, ""))
        assert (nominated(system), conditions(system)) == ("", [])

    def test_pods_that_are_gone_bound_or_others_are_passed_over(self, system: System, uid: PodUid) -> None:
        system.put(pod_manifest("default/bound"))
        bound = PodKey("default/bound")
        system.cluster.bind([system.binding(bound)])
        system.settle()
        heard = system.listed()
        before = [system.there(kinds.POD, key) for key in (WEB, bound)]
        report(
            system,
            status("dead", nominated="n1"),
            SchedulingStatus(bound, before[1]["metadata"]["uid"], "Unschedulable", "no", NodeName("n2")),
            SchedulingStatus(PodKey("default/none"), uid, "Unschedulable", "no", NodeName("n1")),
        )
        assert [system.there(kinds.POD, key) for key in (WEB, bound)] == before
        assert system.told_nothing(heard)

    def test_the_watch_tells_of_it(self, system: System, uid: PodUid) -> None:
        heard = system.listed()
        report(system, status(uid))
        system.put(pod_manifest("default/mark"))
        heard.wait_for(Change.ADDED, "Pod", "default/mark")
        told = [event for event in heard.events if event.key == WEB]
        version = int(system.version_of(kinds.POD, WEB))
        assert [(each.change, each.uid, each.version, each.object) for each in told] == [
            (Change.STATUS, uid, version, None)
        ]


class TestEvents:
    def event(self, uid: str, message: str = "no room", key: str = WEB) -> PodEvent:
        return PodEvent(PodKey(key), PodUid(uid), "Warning", "FailedScheduling", message)

    def test_events_are_told_in_order(self, system: System, uid: PodUid) -> None:
        preempted = PodEvent(WEB, uid, "Normal", "Preempted", "by pod u2 on node n1", related=(PodKey("a/b"), "u2"))
        system.cluster.record([self.event(uid), preempted])
        system.settle()
        assert system.events(WEB) == [
            ToldEvent("Warning", "FailedScheduling", "no room", 1),
            ToldEvent("Normal", "Preempted", "by pod u2 on node n1", 1),
        ]

    def test_repeats_are_counted(self, system: System, uid: PodUid) -> None:
        system.cluster.record([self.event(uid), self.event(uid)])
        system.settle()
        assert system.events(WEB) == [ToldEvent("Warning", "FailedScheduling", "no room", 2)]

    def test_pods_that_are_gone_get_none_that_another_pod_of_the_name_shows(self, system: System, uid: PodUid) -> None:
        system.cluster.record([self.event("dead")])
        system.settle()
        assert system.events_of(WEB, uid) == []


class TestDeleting:
    def test_a_pod_is_deleted_and_it_is_said_why(self, system: System, uid: PodUid) -> None:
        heard = system.listed()
        system.cluster.delete_pods([(WEB, uid)], "PreemptionByScheduler", "preempted")
        system.settle()
        assert system.read(kinds.POD, WEB) is None
        assert list(system.cluster.get_pods([WEB])) == [None]
        assert system.why_deleted(uid) == "PreemptionByScheduler"
        deleted = heard.wait_for(Change.DELETED, "Pod", WEB)
        assert (deleted.uid, deleted.object) == (uid, None)

    def test_a_bound_pod_is_deleted_too(self, system: System, uid: PodUid) -> None:
        system.cluster.bind([system.binding(WEB)])
        heard = system.listed()
        system.cluster.delete_pods([(WEB, uid)], "PreemptionByScheduler", "preempted")
        assert heard.wait_for(Change.DELETED, "Pod", WEB).uid == uid

    def test_deleting_again_or_another_pod_of_the_name_does_nothing(self, system: System, uid: PodUid) -> None:
        before = system.there(kinds.POD, WEB)
        heard = system.listed()
        gone: list[Any] = [(WEB, PodUid("dead")), (PodKey("default/none"), uid)]
        system.cluster.delete_pods(gone, "PreemptionByScheduler", "preempted")
        system.settle()
        assert system.there(kinds.POD, WEB) == before
        assert system.told_nothing(heard)
        for _ in range(2):
            system.cluster.delete_pods([(WEB, uid)], "PreemptionByScheduler", "preempted")
            system.settle()
        system.put(pod_manifest(WEB))
        again = system.uid(WEB)
        assert again != uid
        system.cluster.delete_pods([(WEB, uid)], "PreemptionByScheduler", "preempted")
        system.settle()
        assert system.uid(WEB) == again

    def test_one_that_is_not_there_keeps_no_other(self, system: System, uid: PodUid) -> None:
        system.put(pod_manifest("default/other"))
        other = PodKey("default/other")
        pods = [(PodKey("default/none"), uid), (WEB, uid), (other, system.uid(other))]
        system.cluster.delete_pods(pods, "PreemptionByScheduler", "preempted")
        system.settle()
        assert list(system.cluster.get_pods([WEB, other])) == [None, None]
