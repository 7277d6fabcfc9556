"""Queues of an API server: watched where they are asked for and served, and told how much they have."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from dsched.cluster.interface import Change
from dsched.cluster.kubernetes import reflector
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.model.queues import QueueStatus
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import DEADLINE_S, wait_until
from tests.integration.cluster.watching import Watcher
from tests.manifests import pod_manifest, queue_manifest

WATCHED = "/apis/dsched.io/v1alpha1/queues"
BUSY = QueueStatus({"cpu": "1500m", "memory": "1Gi"}, {"cpu": "2"}, pending_pods=3)


def patches(api: FakeApi) -> int:
    return sum(count for (method, _), count in api.requests.items() if method == "PATCH")


def told(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """What was said about queues that are not served, or whose watch is interrupted."""
    return [each for each in caplog.records if getattr(each, "kind", "") == "Queue"]


@pytest.fixture
def heard(api: FakeApi, cluster: Kubernetes, watcher: Callable[[], Watcher]) -> Watcher:
    api.put("queues", queue_manifest(weight=2))
    cluster.lead(1, lambda: True, queues=True)
    return watcher()


def test_queues_are_asked_for_by_who_schedules_by_them(api: FakeApi, cluster: Kubernetes) -> None:
    api.put("queues", queue_manifest())
    assert "Queue" not in cluster.list().others
    cluster.lead(1, lambda: True, groups=True)
    assert "Queue" not in cluster.list().others
    assert not any(WATCHED in path for _, path in api.requests)


def test_a_server_without_the_kind_is_told_of_once(
    api: FakeApi,
    cluster: Kubernetes,
    watcher: Callable[[], Watcher],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector, "ABSENT_S", 0.01)
    caplog.set_level(logging.INFO)
    api.fault("GET", WATCHED, status=404, times=5)
    cluster.lead(1, lambda: True, queues=True)
    hears = watcher()
    assert hears.listing.others["Queue"] == []
    wait_until("asked for again", lambda: sum(n for (_, path), n in api.requests.items() if WATCHED in path) >= 5)
    (record,) = told(caplog)
    assert (record.levelname, record.remedy.split(";")[0]) == (
        "WARNING",
        "kubectl apply -f deploy/kubernetes/base/crds.yaml",
    )
    api.put("queues", queue_manifest())
    hears.wait_for(Change.ADDED, "Queue", "train")


def test_a_status_stands_on_its_queue(api: FakeApi, cluster: Kubernetes, heard: Watcher) -> None:
    cluster.report_queues({"train": BUSY, "none": BUSY})
    assert cluster.drain(DEADLINE_S)
    found = api.get("queues", "train")
    assert found["spec"] == {"weight": 2}
    assert found["status"] == {
        "usage": {"cpu": "1500m", "memory": "1Gi"},
        "fairShare": {"cpu": "2"},
        "pendingPods": 3,
    }
    cluster.report_queues({"train": QueueStatus({"cpu": "1"})})
    assert cluster.drain(DEADLINE_S)
    assert api.get("queues", "train")["status"] == {"usage": {"cpu": "1"}}
    assert api.requests["PATCH", f"{WATCHED}/train/status"] == patches(api) == 2


def test_what_stands_there_is_not_written_again(api: FakeApi, cluster: Kubernetes, heard: Watcher) -> None:
    cluster.report_queues({"train": BUSY})
    assert cluster.drain(DEADLINE_S)
    cluster.report_queues({"train": BUSY})
    assert cluster.drain(DEADLINE_S)
    api.put("pods", pod_manifest("default/mark"))
    heard.wait_for(Change.MODIFIED, "Queue", "train")
    cluster.report_queues({"train": BUSY})
    assert cluster.drain(DEADLINE_S)
    assert patches(api) == 1


@pytest.mark.usefixtures("heard")
def test_the_newest_status_is_written(api: FakeApi, cluster: Kubernetes) -> None:
    good: list[bool] = []
    cluster.lead(1, lambda: bool(good), queues=True)
    cluster.report_queues({"train": QueueStatus(pending_pods=1)})
    cluster.report_queues({"train": QueueStatus(pending_pods=2)})
    good.append(True)
    assert cluster.drain(DEADLINE_S)
    assert (api.get("queues", "train")["status"], patches(api)) == ({"pendingPods": 2}, 1)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("fault", [{"status": 500}, {"drop": "after"}, {"drop": "before"}])
def test_a_status_gets_there_in_spite_of_faults(api: FakeApi, cluster: Kubernetes, fault: dict[str, Any]) -> None:
    api.fault("PATCH", "/train/status", times=2, **fault)
    cluster.report_queues({"train": BUSY})
    assert cluster.drain(DEADLINE_S)
    assert api.get("queues", "train")["status"]["pendingPods"] == 3
