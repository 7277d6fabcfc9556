"""What is written in the background: conditions, promises, evictions, events; and volumes, which PreBind writes."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dsched.cluster.interface import Binding, BindVerdict, Change, PodEvent, SchedulingStatus
from dsched.cluster.kubernetes import recorder, writer
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.volumes import ClaimBinding, NodeSelection
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import DEADLINE_S
from tests.integration.cluster.watching import Watcher
from tests.manifests import pod_manifest

KEY, UID = PodKey("default/web"), PodUid("u1")


@pytest.fixture
def heard(api: FakeApi, watcher: Callable[[], Watcher]) -> Watcher:
    api.put("pods", pod_manifest(KEY, uid=UID))
    return watcher()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "A_SECOND_WHILE_BINDING", 10_000.0)


def unschedulable(message: str = "0/1 nodes", nominated: str | None = None, uid: str = UID) -> SchedulingStatus:
    return SchedulingStatus(
        KEY, PodUid(uid), "Unschedulable", message, None if nominated is None else NodeName(nominated)
    )


def conditions(api: FakeApi) -> list[Any]:
    found: list[Any] = api.get("pods", KEY).get("status", {}).get("conditions", [])
    return found


def patches(api: FakeApi) -> int:
    return sum(
        count for (method, path), count in api.requests.items() if method == "PATCH" and path.endswith("/status")
    )


def test_what_stands_there_is_not_written_again(api: FakeApi, cluster: Kubernetes, heard: Watcher) -> None:
    cluster.report([unschedulable()])
    assert cluster.drain(DEADLINE_S)
    api.put("pods", pod_manifest("default/mark"))
    heard.wait_for(Change.ADDED, "Pod", "default/mark")  # so the watch knows what was written
    cluster.report([unschedulable()])
    assert cluster.drain(DEADLINE_S)
    assert patches(api) == 1


@pytest.mark.usefixtures("heard")
def test_a_pod_bound_meanwhile_is_not_called_unschedulable(api: FakeApi, cluster: Kubernetes) -> None:
    """The watch has not told about it yet: the patch is refused, for the pod has changed since it was looked at."""
    value = api.get("pods", KEY)

    def bind_first(method: str, path: str) -> None:
        if method == "PATCH" and not api.get("pods", KEY)["spec"].get("nodeName"):
            api.put("pods", {**value, "spec": {**value["spec"], "nodeName": "n1"}})

    api.before = bind_first
    cluster.report([unschedulable()])
    assert cluster.drain(DEADLINE_S)
    assert conditions(api) == []


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("fault", [{"status": 409}, {"status": 500}, {"drop": "after"}, {"drop": "before"}])
def test_a_status_gets_there_in_spite_of_faults(api: FakeApi, cluster: Kubernetes, fault: dict[str, Any]) -> None:
    api.fault("PATCH", "/web/status", times=2, **fault)
    cluster.report([unschedulable()])
    assert cluster.drain(DEADLINE_S)
    assert len(conditions(api)) == 1


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("fault", [{"status": 500}, {"drop": "before"}])
def test_what_cannot_be_written_for_long_is_written_afterwards(
    api: FakeApi, cluster: Kubernetes, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    """In order: the promise, then the eviction; a status in between is not lost, either."""
    monkeypatch.setattr(writer, "PATIENCE_S", 0.05)
    api.put("pods", pod_manifest("default/victim", uid="v1"), pod_manifest("default/other", uid="o1"))
    for method in ("GET", "PATCH", "DELETE"):
        api.fault(method, "/namespaces/", times=1_000_000, **fault)
    cluster.report([unschedulable(nominated="n1")])
    cluster.delete_pods([(PodKey("default/victim"), PodUid("v1"))], "PreemptionByScheduler", "m")
    cluster.report([SchedulingStatus(PodKey("default/other"), PodUid("o1"), "Unschedulable", "m", None)])
    assert not cluster.drain(0.3)
    with api.lock:
        api._faults.clear()
    assert cluster.drain(DEADLINE_S)
    assert api.get("pods", KEY)["status"]["nominatedNodeName"] == "n1"
    assert ("pods", "default/victim") not in api.objects
    assert api.get("pods", "default/other")["status"]["conditions"]


@pytest.mark.usefixtures("heard")
def test_what_was_dropped_while_it_could_not_be_written_stays_dropped(
    api: FakeApi, cluster: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another leader leads by then, and may have other victims in mind."""
    monkeypatch.setattr(writer, "PATIENCE_S", 0.05)
    api.put("pods", pod_manifest("default/victim", uid="v1"))
    dropped = threading.Event()

    def drop(method: str, path: str) -> None:
        if path.endswith("/victim/status") and not dropped.is_set():
            cluster._writer.drop()
            dropped.set()

    api.before = drop
    api.fault("PATCH", "/victim/", times=1_000_000, drop="before")
    cluster.delete_pods([(PodKey("default/victim"), PodUid("v1"))], "PreemptionByScheduler", "m")
    assert dropped.wait(DEADLINE_S)
    assert cluster.drain(DEADLINE_S)
    assert ("pods", "default/victim") in api.objects


@pytest.mark.usefixtures("heard")
def test_victims_are_told_why_and_deleted_after_the_promise(api: FakeApi, cluster: Kubernetes) -> None:
    api.put("pods", pod_manifest("default/victim", uid="v1"))
    seen: list[tuple[str, str]] = []
    api.before = lambda method, path: seen.append((method, path)) if method != "GET" else None
    cluster.report([unschedulable(nominated="n1")])
    cluster.delete_pods([(PodKey("default/victim"), PodUid("v1"))], "PreemptionByScheduler", "m")
    assert cluster.drain(DEADLINE_S)
    pods = "/api/v1/namespaces/default/pods"
    assert seen == [
        ("PATCH", f"{pods}/web/status"),
        ("PATCH", f"{pods}/victim/status"),
        ("DELETE", f"{pods}/victim"),
    ]
    assert ("pods", "default/victim") not in api.objects


def test_a_leader_that_stands_down_deletes_nothing_more(api: FakeApi, cluster: Kubernetes, heard: Watcher) -> None:
    api.put("pods", pod_manifest("default/victim", uid="v1"))
    api.fault("PATCH", "/web/status", status=429, headers={"Retry-After": "1"})
    cluster.report([unschedulable(nominated="n1")])
    cluster.delete_pods([(PodKey("default/victim"), PodUid("v1"))], "PreemptionByScheduler", "m")
    cluster.stand_down()
    assert cluster.drain(DEADLINE_S)
    assert ("pods", "default/victim") in api.objects


def test_nothing_is_written_while_the_lease_may_have_run_out(api: FakeApi, cluster: Kubernetes, heard: Watcher) -> None:
    api.put("pods", pod_manifest("default/victim", uid="v1"))
    asked, good = threading.Event(), threading.Event()

    def holds() -> bool:
        asked.set()
        return good.is_set()

    cluster.lead(1, holds)
    cluster.delete_pods([(PodKey("default/victim"), PodUid("v1"))], "PreemptionByScheduler", "m")
    assert asked.wait(DEADLINE_S)
    assert not cluster.drain(0.2)
    assert ("pods", "default/victim") in api.objects
    good.set()
    assert cluster.drain(DEADLINE_S)
    assert ("pods", "default/victim") not in api.objects


# -- events ------------------------------------------------------------------------------------------------------------


def failed(message: str = "no room", key: str = KEY) -> PodEvent:
    return PodEvent(PodKey(key), UID, "Warning", "FailedScheduling", message)


def events(api: FakeApi) -> list[Any]:
    return api.all("events")


def test_a_bind_is_told_once(api: FakeApi, cluster: Kubernetes) -> None:
    api.put("pods", pod_manifest(KEY, uid=UID))
    for _ in range(2):
        cluster.bind([Binding(KEY, UID, NodeName("n1"), 1)])
    assert cluster.drain(DEADLINE_S)
    (event,) = events(api)
    assert event["reason"] == "Scheduled"
    assert event["action"] == "Binding"
    assert event["note"] == "Successfully assigned default/web to n1"
    assert event["type"] == "Normal"
    assert event["reportingController"] == "dsched"
    assert event["regarding"]["uid"] == UID
    assert event["metadata"]["namespace"] == "default"
    assert event["eventTime"].endswith("Z")


def test_each_profile_reports_in_its_own_name(api: FakeApi, cluster: Kubernetes) -> None:
    api.put("pods", pod_manifest(KEY, uid=UID))
    cluster.bind([Binding(KEY, UID, NodeName("n1"), 1, "batch")])
    cluster.record([failed()])
    assert cluster.drain(DEADLINE_S)
    reporters = {event["reason"]: (event["reportingController"], event["reportingInstance"]) for event in events(api)}
    host = socket.gethostname()
    assert reporters == {
        "Scheduled": ("batch", f"batch-{host}"),
        "FailedScheduling": ("dsched", f"dsched-{host}"),
    }


def test_events_are_held_back_while_many_pods_are_bound_but_not_for_ever(
    api: FakeApi, cluster: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "A_SECOND_WHILE_BINDING", 1e-6)
    monkeypatch.setattr(recorder, "BINDING_S", 3600.0)
    keys = [f"default/p{number}" for number in range(recorder.MANY)]
    api.put("pods", pod_manifest(KEY, uid=UID), *(pod_manifest(key, uid=key) for key in keys))
    cluster.bind([Binding(KEY, UID, NodeName("n1"), 1)])
    assert cluster.drain(DEADLINE_S), "a single one holds nothing back"
    assert len(events(api)) == 1
    monkeypatch.setattr(recorder.Recorder, "_pause", lambda self, seconds: self._stop.wait(min(seconds, 0.05)))
    cluster.bind([Binding(PodKey(key), PodUid(key), NodeName("n1"), 1) for key in keys])
    assert not cluster.drain(1.0)
    assert len(events(api)) == 1
    monkeypatch.setattr(recorder, "HOLD_S", 0.0)
    assert cluster.drain(DEADLINE_S)
    assert len(events(api)) == 1 + len(keys)


def test_a_process_that_ends_holds_no_events_back(
    api: FakeApi, cluster: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "A_SECOND_WHILE_BINDING", 1e-6)
    monkeypatch.setattr(recorder, "BINDING_S", 3600.0)
    monkeypatch.setattr(recorder.Recorder, "_pause", lambda self, seconds: self._stop.wait(min(seconds, 0.05)))
    keys = [f"default/p{number}" for number in range(recorder.MANY)]
    api.put("pods", *(pod_manifest(key, uid=key) for key in keys))
    cluster.bind([Binding(PodKey(key), PodUid(key), NodeName("n1"), 1) for key in keys])
    assert cluster.drain(DEADLINE_S, hurry=True)
    assert len(events(api)) == len(keys)


@pytest.mark.parametrize("fault", [{"drop": "after"}, {"status": 500}])
def test_a_pod_is_told_once_that_it_was_scheduled_whoever_finds_it_bound(
    api: FakeApi, cluster: Kubernetes, access: Access, fault: dict[str, Any]
) -> None:
    """The answer to the bind is lost; later it is asked for the same again, and so is another binder."""
    api.put("pods", pod_manifest(KEY, uid=UID))
    other = Kubernetes(access)
    api.fault("POST", "/binding", **fault)
    for binder in (cluster, cluster, other, other):
        (outcome,) = binder.bind([Binding(KEY, UID, NodeName("n1"), 1)])
        assert outcome.verdict is BindVerdict.BOUND
        assert binder.drain(DEADLINE_S)
    other.close()
    assert [(event["reason"], event.get("series")) for event in events(api)] == [("Scheduled", None)]


def test_victims_are_told_for_whom_they_make_room(api: FakeApi, cluster: Kubernetes) -> None:
    """Who is evicted for two pods is told so twice."""
    for uid in ("u1", "u2"):
        message = f"Preempted by pod {uid} on node n1"
        related = (PodKey("default/urgent"), PodUid(uid))
        cluster.record([PodEvent(KEY, UID, "Normal", "Preempted", message, "dsched", related)])
    assert cluster.drain(DEADLINE_S)
    assert [(each["action"], each["related"]) for each in events(api)] == [
        ("Preempting", {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "urgent", "uid": uid})
        for uid in ("u1", "u2")
    ]


@pytest.mark.parametrize("length", [236, 237, 253])
def test_events_have_names_that_the_api_server_takes(api: FakeApi, cluster: Kubernetes, length: int) -> None:
    key = PodKey("default/" + "p" * length)
    api.put("pods", pod_manifest(key, uid=UID))
    cluster.record([failed(key=key)])
    for binder in (cluster, cluster):
        binder.bind([Binding(key, UID, NodeName("n1"), 1)])
    assert cluster.drain(DEADLINE_S)
    names = [event["metadata"]["name"] for event in events(api)]
    assert len(names) == len(set(names)) == 2
    assert all(len(name) <= 253 for name in names)


def test_repeats_become_a_series(api: FakeApi, cluster: Kubernetes) -> None:
    cluster.record([failed() for _ in range(100)])
    assert cluster.drain(DEADLINE_S)
    (event,) = events(api)
    assert event["series"]["count"] == 2, "that there is a series is told at once"
    posts = sum(count for (method, _), count in api.requests.items() if method in ("POST", "PATCH"))
    assert posts == 2, "and the rest is counted"
    (series,) = cluster._recorder._series.values()
    now = series.told_s
    cluster._recorder.sweep(now + recorder.TELL_S + 1)
    (event,) = events(api)
    assert event["series"]["count"] == 100
    cluster._recorder.sweep(now + recorder.TELL_S + recorder.FORGET_S + 1)
    cluster.record([failed()])
    assert cluster.drain(DEADLINE_S)
    assert len(events(api)) == 2, "a series that is over begins anew"


def test_a_series_whose_event_is_gone_begins_anew(api: FakeApi, cluster: Kubernetes) -> None:
    cluster.record([failed()])
    assert cluster.drain(DEADLINE_S)
    (event,) = events(api)
    api.delete("events", f"default/{event['metadata']['name']}")
    cluster.record([failed(), failed()])
    assert cluster.drain(DEADLINE_S)
    assert len(events(api)) == 1


def test_when_too_many_wait_the_oldest_are_dropped(
    api: FakeApi, cluster: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "WAITING", 10)
    cluster.record([failed(key=f"default/p{number}") for number in range(50)])
    assert cluster.drain(DEADLINE_S)
    assert sorted(event["regarding"]["name"] for event in events(api)) == [f"p{number}" for number in range(40, 50)]


# -- volumes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def volume(api: FakeApi) -> ClaimBinding:
    api.put("persistentvolumes", {"metadata": {"name": "pv"}, "spec": {"capacity": {"storage": "1Gi"}}})
    api.put("persistentvolumeclaims", {"metadata": {"name": "c", "namespace": "default", "uid": "c1"}, "spec": {}})
    return ClaimBinding("default/c", "c1", "pv", api.get("persistentvolumes", "pv")["metadata"]["resourceVersion"])


@pytest.mark.parametrize("drop", ["before", "after"])
def test_an_answer_that_is_lost_is_no_conflict(
    api: FakeApi, cluster: Kubernetes, volume: ClaimBinding, drop: str
) -> None:
    api.fault("PATCH", "/persistentvolumes/pv$", drop=drop)
    assert cluster.bind_volumes([volume]) == [""]
    assert api.get("persistentvolumes", "pv")["spec"]["claimRef"]["uid"] == "c1"
    version = api.get("persistentvolumeclaims", "default/c")["metadata"]["resourceVersion"]
    api.fault("PATCH", "/persistentvolumeclaims/c$", drop=drop)
    assert cluster.select_nodes([NodeSelection("default/c", "c1", version, NodeName("n1"))]) == [""]
