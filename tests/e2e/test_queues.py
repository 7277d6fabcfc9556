"""Queues of a real API server: what it refuses standalone mode refuses too, and the leader's account suffices to read
them and to say how much they have."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched.cluster.interface import Change
from dsched.cluster.kubernetes import reflector
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.errors import ManifestError
from dsched.model.queues import QueueStatus
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster
from tests.e2e.deployment import KUSTOMIZATIONS, Deployment
from tests.manifests import Json, loaded, queue_manifest

DEADLINE_S = 30.0
GROUP = "dsched.io"
QUEUES = f"queues.{GROUP}"
DEFINITION = KUSTOMIZATIONS / "base" / "crds.yaml"
GPU = "nvidia.com/gpu"
DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"


@pytest.fixture
def queues(api_server: ApiServer, deployment: Deployment) -> Iterator[ApiServer]:
    """The API server with the definition of queues, without queues before and after."""
    yield api_server
    api_server.kubectl("delete", QUEUES, "--all")


@pytest.fixture
def leader(queues: ApiServer, deployment: Deployment) -> Iterator[Kubernetes]:
    """What the leader sees, and may do."""
    cluster = Kubernetes(Access(str(deployment.kubeconfig("leader"))))
    cluster.lead(1, lambda: True, queues=True)
    yield cluster
    cluster.close()


def applied(server: ApiServer, value: Json) -> Json:
    found: Json = json.loads(server.kubectl("apply", "-o", "json", "-f", "-", stdin=json.dumps(value)))
    return found


def shown(server: ApiServer, name: str = "train") -> Json:
    found: Json = json.loads(server.kubectl("get", QUEUES, name, "-o", "json"))
    return found


def test_the_leader_reads_queues_and_says_how_much_they_have(
    queues: ApiServer, leader: Kubernetes, empty_cluster: Cluster
) -> None:
    applied(queues, queue_manifest(weight=2))
    listing = leader.list()
    assert [each["spec"] for each in listing.others["Queue"]] == [{"weight": 2}]

    def say(status: QueueStatus) -> Any:
        leader.report_queues({"train": status, "none": status})
        assert leader.drain(DEADLINE_S)
        return shown(queues).get("status", {})

    usage = {"cpu": "1500m", GPU: 3}
    assert say(QueueStatus(usage, {"cpu": "2"}, {"cpu": "500m"}, {"memory": 7}, pending_pods=3)) == {
        "usage": usage,
        "fairShare": {"cpu": "2"},
        "borrowed": {"cpu": "500m"},
        "pending": {"memory": 7},
        "pendingPods": 3,
    }
    version = shown(queues)["metadata"]["resourceVersion"]
    say(QueueStatus(usage, {"cpu": "2"}, {"cpu": "500m"}, {"memory": 7}, pending_pods=3))
    assert shown(queues)["metadata"]["resourceVersion"] == version
    assert say(QueueStatus({GPU: 3}, reclaimed_pods=1))["usage"] == {GPU: 3}
    applied(queues, {**queue_manifest(weight=3), "status": {"pendingPods": 9}})
    found = shown(queues)
    assert (found["spec"], found["status"].get("pendingPods")) == ({"weight": 3}, None)
    told = []
    at = listing.version
    while not any(each.object["spec"] == {"weight": 3} for each in told):
        events, at = leader.watch(at, DEADLINE_S)
        told += [each for each in events if each.kind == "Queue"]
    assert {each.change for each in told} == {Change.MODIFIED}


def test_a_server_without_the_kind_has_none_until_it_is_defined(
    queues: ApiServer, leader: Kubernetes, empty_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "ABSENT_S", 0.5)
    queues.kubectl("delete", "crd", QUEUES)
    try:
        until = time.monotonic() + DEADLINE_S
        while f"queues.{GROUP}" in queues.kubectl("api-resources", "--api-group", GROUP, "-o", "name"):
            assert time.monotonic() < until
        listing = leader.list()
        assert listing.others["Queue"] == []
    finally:
        queues.kubectl("apply", "-f", str(DEFINITION))
        queues.kubectl("wait", "--for=condition=Established", "crd", QUEUES)
    applied(queues, queue_manifest())
    at, told = listing.version, []
    until = time.monotonic() + DEADLINE_S
    while "train" not in told and time.monotonic() < until:
        events, at = leader.watch(at, 1.0)
        told += [each.key for each in events if each.kind == "Queue"]
    assert told == ["train"]


def test_columns_tell_parent_weight_and_what_waits(queues: ApiServer) -> None:
    applied(queues, queue_manifest("train", "ml", weight=2))
    header, row = queues.kubectl("get", QUEUES).splitlines()
    assert header.split() == ["NAME", "PARENT", "WEIGHT", "PENDING", "RECLAIMED", "AGE"]
    assert row.split()[:3] == ["train", "ml", "2"]


def of(resource: str = "cpu", **fields: Any) -> Json:
    return queue_manifest(resources={resource: fields})


@pytest.mark.parametrize(
    "value",
    [
        queue_manifest(),
        {name: field for name, field in queue_manifest().items() if name != "spec"},
        queue_manifest(
            "full",
            "bare",
            weight=0,
            reclaim="LowerPriority",
            minRuntime="1h30m",
            namespaces=["a", "b"],
            resources={
                "cpu": {"guaranteed": "500m", "limit": "1.5", "weight": 3},
                "memory": {"guaranteed": "1Gi", "limit": "1Gi"},
                "pods": {"limit": 10},
                GPU: {"guaranteed": 8, "limit": "1k"},
                DEVICES: {"limit": "4"},
            },
        ),
    ],
)
def test_what_standalone_mode_takes_is_taken(queues: ApiServer, tmp_path: Path, value: Json) -> None:
    (own,) = loaded(tmp_path, value)
    assert applied(queues, value).get("spec", {}) == own.value["spec"]


@pytest.mark.parametrize(
    "value",
    [
        queue_manifest("q" * 64),
        queue_manifest("a", "A"),
        queue_manifest("a", "a"),
        queue_manifest(weight=-1),
        queue_manifest(weight=2**31),
        queue_manifest(reclaim="Sometimes"),
        queue_manifest(minRuntime="10"),
        queue_manifest(minRuntime="-1s"),
        queue_manifest(minRuntime="9999999999h"),
        queue_manifest(namespaces=["a", "B"]),
        queue_manifest(namespaces=["a", "a"]),
        queue_manifest(wait=1),
        of(guarantee=1),
        of(guaranteed="1x"),
        of(guaranteed=-1),
        of(limit="-1m"),
        of(guaranteed="2", limit="1999m"),
        of(guaranteed=2, limit=1),
        of(weight=-3),
        of("memory", weight=2**31),
        of(GPU, limit="500m"),
        of(DEVICES, guaranteed="1.5"),
        of("pods", limit="1.5"),
        of("a/b/c", limit=1),
        of("a b", limit=1),
    ],
    ids=lambda value: json.dumps([value["metadata"]["name"][:3], value["spec"]])[:80],
)
def test_what_standalone_mode_refuses_is_refused(queues: ApiServer, tmp_path: Path, value: Json) -> None:
    with pytest.raises(ManifestError):
        loaded(tmp_path, value)
    with pytest.raises(AssertionError, match=r"(?i)invalid|forbidden|unknown field"):
        applied(queues, value)
