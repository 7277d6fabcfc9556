"""An API server that is newer sends fields that dsched does not know: the pod is taken, and it is told."""

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import REGISTRY

from dsched.cluster.interface import Change
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.model.pod import Pod
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import DEADLINE_S, wait_until
from tests.integration.cluster.watching import Watcher
from tests.manifests import Json, pod_manifest

PROFILES = frozenset({"dsched"})


def ours(key: str, **spec: Any) -> Json:
    return pod_manifest(key, schedulerName="dsched", **spec)


def events(api: FakeApi) -> list[tuple[str, str]]:
    return [(each["regarding"]["name"], each["note"].rpartition(": ")[2]) for each in api.all("events")]


def count(field: str) -> float:
    return REGISTRY.get_sample_value("dsched_unknown_fields_total", {"field": field}) or 0.0


@pytest.fixture
def leading(cluster: Kubernetes) -> Kubernetes:
    cluster.lead(1, lambda: True, PROFILES)
    return cluster


@pytest.mark.parametrize("watch_lists", [True, False])
def test_a_pod_that_is_there_at_first(
    api: FakeApi, leading: Kubernetes, watcher: Callable[[], Watcher], watch_lists: bool
) -> None:
    api.watch_lists = watch_lists
    before = count("spec.ofTomorrow")
    api.put("pods", ours("default/web", ofTomorrow={"a": 1}), ours("default/plain"))
    heard = watcher()
    assert sorted(pod.key for pod in heard.listing.pods) == ["default/plain", "default/web"]
    wait_until("the field is counted", lambda: count("spec.ofTomorrow") == before + 1)
    wait_until("the event is there", lambda: events(api))
    assert leading.drain(DEADLINE_S)
    (event,) = api.all("events")
    assert (event["reason"], event["type"], event["regarding"]["name"]) == ("UnknownField", "Warning", "web")
    assert event["reportingController"] == "dsched"
    assert events(api) == [("web", "spec.ofTomorrow")]


def test_pods_that_come_and_change(api: FakeApi, leading: Kubernetes, watcher: Callable[[], Watcher]) -> None:
    heard = watcher()
    before = count("spec.fresh")
    api.put("pods", ours("default/web", fresh=1))
    event = heard.wait_for(Change.ADDED, "Pod", "default/web")
    assert isinstance(event.object, Pod)
    api.put("pods", ours("default/web", fresh=1, nodeSelector={"a": "b"}))
    heard.wait_for(Change.MODIFIED, "Pod", "default/web")
    assert count("spec.fresh") == before + 1, "a change of something else is not told again"
    api.put("pods", ours("default/web", fresh=1, later=1, nodeSelector={"a": "c"}))
    wait_until("what came later is counted", lambda: count("spec.later"))
    assert leading.drain(DEADLINE_S)
    # A second event about the same pod is a repeat of the first for the recorder.
    assert events(api) == [("web", "spec.fresh")]


def test_others_pods_get_no_event(api: FakeApi, leading: Kubernetes, watcher: Callable[[], Watcher]) -> None:
    before = count("spec.foreign")
    api.put("pods", pod_manifest("default/other", schedulerName="another", foreign=1))
    api.put("pods", ours("default/bound", nodeName="n1", foreign=1))
    watcher()
    wait_until("both are counted", lambda: count("spec.foreign") == before + 2)
    assert leading.drain(DEADLINE_S)
    assert events(api) == []
