"""Groups of scheduler-plugins at an API server: watched where the gate asks for it and the CRD is there."""

from collections.abc import Callable
from typing import Any

import pytest

from dsched.cluster.interface import Change, GroupStatus
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.model.coscheduling import API_VERSION, LABEL
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import DEADLINE_S
from tests.integration.cluster.watching import Watcher
from tests.manifests import group_manifest, pod_manifest

PLURAL = "podgroups.scheduling.x-k8s.io"
WATCHED = f"/apis/{API_VERSION}/podgroups"


def group(name: str = "train", min_member: int = 3) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": API_VERSION, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": min_member}}


def labelled(name: str) -> dict[str, Any]:
    pod = pod_manifest(f"default/{name}")
    pod["metadata"]["labels"] = {LABEL: "train"}
    return pod


@pytest.fixture
def heard(api: FakeApi, cluster: Kubernetes, watcher: Callable[[], Watcher]) -> Watcher:
    api.put(PLURAL, group())
    api.put("pods", labelled("a"))
    cluster.lead(1, lambda: True, groups=True, coscheduling=True)
    return watcher()


def test_groups_and_pods_are_told_as_those_of_kubernetes(api: FakeApi, cluster: Kubernetes, heard: Watcher) -> None:
    (found,) = heard.listing.others["PodGroup"]
    assert found["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert [pod.group_key for pod in heard.listing.pods] == ["default/train"]
    api.put("pods", labelled("b"))
    pod = heard.wait_for(Change.ADDED, "Pod", "default/b").object
    assert isinstance(pod, Pod) and pod.group_key == "default/train"
    api.put(PLURAL, group(min_member=2))
    changed: Any = heard.wait_for(Change.MODIFIED, "PodGroup", "default/train").object
    assert changed["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    (read,) = cluster.get_pods([PodKey("default/a")])
    assert read is not None and read.group_key == "default/train"
    api.delete(PLURAL, "default/train")
    assert heard.wait_for(Change.DELETED, "PodGroup", "default/train").object is None


def test_a_group_of_kubernetes_of_the_same_name_counts(api: FakeApi, heard: Watcher) -> None:
    api.put("podgroups", group_manifest("default/train", 5))
    heard.wait_for(Change.ADDED, "PodGroup", "default/train")
    api.put(PLURAL, group(min_member=2))
    api.put(PLURAL, group("mark"))
    heard.wait_for(Change.ADDED, "PodGroup", "default/mark")
    assert not [event for event in heard.events if event.change is Change.MODIFIED and event.kind == "PodGroup"]


@pytest.mark.usefixtures("heard")
def test_no_condition_is_written_on_them(api: FakeApi, cluster: Kubernetes) -> None:
    cluster.report_groups([GroupStatus(GroupKey("default/train"), "uid-train", True, "Scheduled", "")])
    assert cluster.drain(DEADLINE_S)
    assert not any(method == "PATCH" for method, _ in api.requests)


def test_they_are_not_asked_for_without_the_gate(api: FakeApi, cluster: Kubernetes) -> None:
    api.put(PLURAL, group())
    api.put("pods", labelled("a"))
    cluster.lead(1, lambda: True, groups=True)
    listing = cluster.list()
    assert listing.others["PodGroup"] == [] and [pod.group_key for pod in listing.pods] == [""]
    assert not any(WATCHED in path for _, path in api.requests)


def test_without_the_crd_there_are_none(api: FakeApi, cluster: Kubernetes) -> None:
    api.fault("GET", WATCHED, status=404, times=100)
    cluster.lead(1, lambda: True, groups=True, coscheduling=True)
    assert cluster.list().others["PodGroup"] == []
