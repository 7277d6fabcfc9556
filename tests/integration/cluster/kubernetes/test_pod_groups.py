"""Pod groups of an API server: watched where they are asked for, and told what came of them."""

from collections.abc import Callable
from typing import Any

import pytest

from dsched.cluster.interface import Change, GroupStatus
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.model.pod_groups import GroupKey
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import DEADLINE_S
from tests.integration.cluster.watching import Watcher
from tests.manifests import group_manifest, pod_manifest

KEY = GroupKey("default/train")
WATCHED = "/apis/scheduling.k8s.io/v1beta1/podgroups"


def status(scheduled: bool = False, message: str = "no", uid: str = "g1") -> GroupStatus:
    return GroupStatus(KEY, uid, scheduled, "Scheduled" if scheduled else "Unschedulable", message)


def conditions(api: FakeApi) -> list[Any]:
    found: list[Any] = api.get("podgroups", KEY).get("status", {}).get("conditions", [])
    return found


def patches(api: FakeApi) -> int:
    return sum(count for (method, _), count in api.requests.items() if method == "PATCH")


def group(uid: str = "g1") -> dict[str, Any]:
    value = group_manifest(KEY)
    return {**value, "metadata": {**value["metadata"], "uid": uid}}


@pytest.fixture
def heard(api: FakeApi, cluster: Kubernetes, watcher: Callable[[], Watcher]) -> Watcher:
    api.put("podgroups", group())
    cluster.lead(1, lambda: True, groups=True)
    return watcher()


def test_groups_are_asked_for_by_who_schedules_them(api: FakeApi, cluster: Kubernetes) -> None:
    api.put("podgroups", group())
    assert "PodGroup" not in cluster.list().others
    cluster.lead(1, lambda: True)
    assert "PodGroup" not in cluster.list().others
    assert not any(WATCHED in path for _, path in api.requests)


def test_a_server_without_groups_has_none(api: FakeApi, cluster: Kubernetes) -> None:
    api.fault("GET", WATCHED, status=404, times=100)
    cluster.lead(1, lambda: True, groups=True)
    assert cluster.list().others["PodGroup"] == []


def test_what_stands_there_is_not_written_again(api: FakeApi, cluster: Kubernetes, heard: Watcher) -> None:
    cluster.report_groups([status()])
    assert cluster.drain(DEADLINE_S)
    api.put("pods", pod_manifest("default/mark"))
    heard.wait_for(Change.MODIFIED, "PodGroup", KEY)
    cluster.report_groups([status()])
    assert cluster.drain(DEADLINE_S)
    assert patches(api) == 1


@pytest.mark.usefixtures("heard")
def test_a_group_found_scheduled_meanwhile_stays_so(api: FakeApi, cluster: Kubernetes) -> None:
    """The watch has not told about it yet: the patch is refused, for the group has changed since it was looked at."""
    true = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled"}

    def schedule_first(method: str, path: str) -> None:
        if method == "PATCH" and not conditions(api):
            api.put("podgroups", {**api.get("podgroups", KEY), "status": {"conditions": [true]}})

    api.before = schedule_first
    cluster.report_groups([status()])
    assert cluster.drain(DEADLINE_S)
    assert conditions(api) == [true]


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("fault", [{"status": 409}, {"status": 500}, {"drop": "after"}, {"drop": "before"}])
def test_a_condition_gets_there_in_spite_of_faults(api: FakeApi, cluster: Kubernetes, fault: dict[str, Any]) -> None:
    api.fault("PATCH", "/train/status", times=2, **fault)
    cluster.report_groups([status()])
    assert cluster.drain(DEADLINE_S)
    assert len(conditions(api)) == 1
