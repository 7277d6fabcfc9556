"""Listing and watching: everything is heard once, whatever becomes of connections, history and servers."""

import threading
from collections.abc import Callable

import pytest

from dsched.cluster.interface import Change
from dsched.cluster.kubernetes import feed, reflector
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.cluster.kubernetes.http import pages
from dsched.errors import ClusterUnavailable, WatchExpired
from dsched.model.pod import Pod
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import wait_until
from tests.integration.cluster.watching import Watcher
from tests.manifests import node_manifest, other_manifest, pod_manifest

Watch = Callable[[], Watcher]
ADDED, MODIFIED, DELETED, BOUND = Change.ADDED, Change.MODIFIED, Change.DELETED, Change.BOUND


@pytest.fixture(params=[True, False], ids=["watch-list", "list"])
def either(request: pytest.FixtureRequest, api: FakeApi) -> None:
    """With servers that stream what is there, and with those that have to be asked for pages."""
    api.watch_lists = request.param


@pytest.mark.usefixtures("either")
def test_everything_is_listed_and_what_happens_later_is_told(
    api: FakeApi, watcher: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE", 2)
    api.put("nodes", node_manifest("n1"), node_manifest("n2"))
    api.put("pods", *(pod_manifest(f"default/p{number}") for number in range(5)))
    api.put("services", {**other_manifest("Service", "v1", "web"), "metadata": {"name": "web", "namespace": "shop"}})
    heard = watcher()
    assert [pod.key for pod in heard.listing.pods] == [f"default/p{number}" for number in range(5)]
    assert [node.name for node in heard.listing.nodes] == ["n1", "n2"]
    (service,) = heard.listing.others["Service"]
    assert service["metadata"]["name"] == "web"
    assert "managedFields" not in service["metadata"]
    assert heard.listing.version == int(service["metadata"]["resourceVersion"])

    api.put("pods", pod_manifest("default/late"))
    api.put("nodes", node_manifest("n2", cpu="8"))
    api.delete("pods", "default/p0")
    event = heard.wait_for(ADDED, "Pod", "default/late")
    assert isinstance(event.object, Pod)
    assert event.object.spec.containers[0].image == "nginx"
    heard.wait_for(MODIFIED, "Node", "n2")
    assert heard.wait_for(DELETED, "Pod", "default/p0").uid
    assert heard.version == max(event.version for event in heard.events)


def test_how_far_it_is_shows_also_where_nothing_is_told(api: FakeApi, cluster: Kubernetes) -> None:
    """fsck waits for the leader to have come so far."""
    api.put("nodes", node_manifest())
    version = cluster.list().version
    node = api.get("nodes", "n1")
    api.put("nodes", {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "True"}]}})
    wanted = int(api.get("nodes", "n1")["metadata"]["resourceVersion"])

    def reached() -> bool:
        nonlocal version
        events, version = cluster.watch(version, 0.05)
        assert not events
        return version == wanted

    wait_until("the version goes on", reached)


def test_what_a_watch_has_left_out_is_told_after_a_while(
    api: FakeApi, watcher: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watches go on from where they were; only a listing can tell that something is missing."""
    monkeypatch.setattr(reflector, "WATCHES_A_LISTING", 1)
    api.put("pods", pod_manifest("default/goes"))
    heard = watcher()
    with monkeypatch.context() as deaf:
        deaf.setattr(api, "_note", lambda *_: None)
        api.delete("pods", "default/goes")
        api.put("pods", pod_manifest("default/comes"))
    api.put("pods", pod_manifest("default/mark"))
    heard.wait_for(ADDED, "Pod", "default/mark")
    assert {event.key for event in heard.events} == {"default/mark"}
    api.end_watches()
    heard.wait_for(DELETED, "Pod", "default/goes")
    heard.wait_for(ADDED, "Pod", "default/comes")


def test_a_pod_that_has_ended_is_gone(api: FakeApi, watcher: Watch) -> None:
    api.put("pods", pod_manifest("default/job"), {**pod_manifest("default/old"), "status": {"phase": "Succeeded"}})
    heard = watcher()
    assert [pod.key for pod in heard.listing.pods] == ["default/job"]
    api.put("pods", {**api.get("pods", "default/job"), "status": {"phase": "Failed"}})
    heard.wait_for(DELETED, "Pod", "default/job")


def test_what_scheduling_does_not_read_is_told_of_pods_without_a_node_only(api: FakeApi, watcher: Watch) -> None:
    api.put("pods", pod_manifest())
    api.put("nodes", node_manifest())
    heard = watcher()
    pod, node = api.get("pods", "default/web"), api.get("nodes", "n1")
    api.put("pods", {**pod, "status": {"conditions": [{"type": "PodScheduled", "status": "False"}], "hostIP": "::1"}})
    api.put("nodes", {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "True"}]}})
    api.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": "n1"}})
    bound = heard.wait_for(BOUND, "Pod", "default/web")
    assert bound.node == "n1"
    assert isinstance(bound.object, Pod)
    api.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": "n1"}, "status": {"startTime": "2026-01-01T00:00:00Z"}})
    heard.wait_for(MODIFIED, "Pod", "default/web")
    assert [change for change, _, _ in heard.told] == [Change.STATUS, BOUND, MODIFIED]


@pytest.mark.usefixtures("either")
def test_after_410_the_difference_is_told(api: FakeApi, watcher: Watch) -> None:
    api.put("pods", *(pod_manifest(f"default/{name}", uid=name) for name in ("stays", "goes", "changes", "anew")))
    heard = watcher()
    api.fault("GET", r"/pods\?.*watch", drop="before", times=3)  # what happens now is told by no watch
    api.end_watches()
    api.delete("pods", "default/goes")
    changed = api.get("pods", "default/changes")
    api.put("pods", {**changed, "metadata": {**changed["metadata"], "labels": {"a": "b"}}})
    api.delete("pods", "default/anew")
    api.put("pods", pod_manifest("default/anew", uid="another"), pod_manifest("default/new"))
    api.compact()
    heard.wait_for(ADDED, "Pod", "default/new")
    heard.wait_for(ADDED, "Pod", "default/anew")
    heard.wait_for(DELETED, "Pod", "default/goes")
    heard.wait_for(MODIFIED, "Pod", "default/changes")
    of_anew = [(event.change, event.uid) for event in heard.events if event.key == "default/anew"]
    assert of_anew == [(DELETED, "anew"), (ADDED, "another")]
    assert not [each for each in heard.told if each[2] == "default/stays"]
    api.put("pods", pod_manifest("default/after"))
    heard.wait_for(ADDED, "Pod", "default/after")


@pytest.mark.parametrize("status", [410, 504])
def test_a_watch_that_is_refused_for_its_version_begins_anew(api: FakeApi, watcher: Watch, status: int) -> None:
    api.put("pods", pod_manifest("default/goes"))
    heard = watcher()
    api.fault("GET", r"/pods\?.*resourceVersion=", status=status, times=10_000)
    api.end_watches()
    api.delete("pods", "default/goes")
    heard.wait_for(DELETED, "Pod", "default/goes")


def test_a_bookmark_is_where_the_watch_goes_on(api: FakeApi, watcher: Watch) -> None:
    api.put("pods", pod_manifest())
    heard = watcher()
    api.bookmark()
    pods = heard._cluster._reflectors["Pod"]
    wait_until("the bookmark is noted", lambda: pods._version == str(api._version))
    api.compact()  # before the bookmark there is nothing left
    lists = sum(count for (_, path), count in api.requests.items() if path == "/api/v1/pods")
    api.end_watches()
    api.put("pods", pod_manifest("default/after"))
    heard.wait_for(ADDED, "Pod", "default/after")
    after = sum(count for (_, path), count in api.requests.items() if path == "/api/v1/pods")
    assert after == lists + 1, "one more watch, and nothing listed again"


@pytest.mark.parametrize(
    "what", [{"drop": "before"}, {"status": 503, "headers": {"Retry-After": "0"}}, {"status": 429}]
)
def test_a_watch_that_is_refused_or_breaks_goes_on(api: FakeApi, watcher: Watch, what: dict[str, object]) -> None:
    heard = watcher()
    api.fault("GET", r"/pods\?.*watch", times=3, **what)
    api.end_watches()
    api.put("pods", pod_manifest("default/meanwhile"))
    heard.wait_for(ADDED, "Pod", "default/meanwhile")
    assert heard.told == [(ADDED, "Pod", "default/meanwhile")]


def test_an_object_that_cannot_be_read_does_not_stop_the_others(api: FakeApi, watcher: Watch) -> None:
    odd = {**pod_manifest("default/odd"), "spec": {"containers": "none"}}
    api.put("pods", odd, pod_manifest("default/sound"))
    heard = watcher()
    assert [pod.key for pod in heard.listing.pods] == ["default/sound"]
    api.put("pods", odd, pod_manifest("default/next"))
    heard.wait_for(ADDED, "Pod", "default/next")


def test_a_kind_that_is_not_served_counts_as_empty(api: FakeApi, watcher: Watch) -> None:
    api.fault("GET", "/csistoragecapacities", status=404)
    assert watcher().listing.others["CSIStorageCapacity"] == []


def test_a_kind_that_may_not_be_read_is_named(api: FakeApi, access: Access) -> None:
    api.fault("GET", "/persistentvolumes", status=403, times=10_000)
    cluster = Kubernetes(access, sync_s=1.0)
    with pytest.raises(ClusterUnavailable, match=r"PersistentVolume: a fault \(403\)"):
        cluster.list()
    cluster.close()


def test_a_storm_is_taken_in_portions(
    api: FakeApi, watcher: Watch, cluster: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch waits when the loop does not keep up, and nothing is lost."""
    monkeypatch.setattr(feed, "LONGEST", 3000)
    heard = watcher()
    api.put("pods", *(pod_manifest(f"default/p{number}") for number in range(10_000)))
    wait_until("the feed is full", lambda: cluster._feed is not None and len(cluster._feed._events) >= 3000)
    portions = []
    while len(heard.events) < 10_000:
        portions.append(len(heard.hear()))
    assert max(portions) == feed.AT_ONCE
    assert {key for _, _, key in heard.told} == {f"default/p{number}" for number in range(10_000)}


def test_who_listed_last_hears(cluster: Kubernetes, watcher: Watch, api: FakeApi) -> None:
    first, second = watcher(), watcher()
    api.put("pods", pod_manifest())
    second.wait_for(ADDED, "Pod", "default/web")
    with pytest.raises(WatchExpired):
        first.hear()
    cluster.stand_down()
    with pytest.raises(WatchExpired):
        second.hear()


def test_watches_end_when_the_leader_stands_down(cluster: Kubernetes, watcher: Watch) -> None:
    before = set(threading.enumerate())
    watcher()
    started = set(threading.enumerate()) - before
    assert {thread.name for thread in started} >= {"watch-pods", "watch-nodes"}
    cluster.stand_down()
    for thread in started:
        if thread.name.startswith("watch-"):
            thread.join(30)
            assert not thread.is_alive(), thread.name


def test_a_survey_tells_what_the_watches_know(api: FakeApi, cluster: Kubernetes, watcher: Watch) -> None:
    api.put("nodes", node_manifest("n1"))
    api.put("pods", pod_manifest("default/free"))
    assert [seen for piece in cluster.survey() for seen in piece] == []
    watcher()
    assert [seen.key for piece in cluster.survey() for seen in piece] == ["n1", "default/free"]
