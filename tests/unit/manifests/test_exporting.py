"""Snapshots: what scheduling reads is kept, what must stay is not there, and reading back gives the same."""

from typing import Any

import msgspec
import pytest

from dsched.manifests import exporting, kinds
from dsched.manifests.load import load_text
from dsched.model import meta
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.simulation.from_manifests import given
from tests.e2e.sample_manifests import SAMPLES

Json = dict[str, Any]
SECRET = "hunter2"
NOW_MS = 1_700_000_000_000

POD: Json = {
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "0b8f3c1e-0000-4000-8000-000000000001",
        "resourceVersion": "7",
        "labels": {"app": "web"},
        "annotations": {exporting.LAST_APPLIED: SECRET, "example.com/team": "web"},
        "managedFields": [{"manager": "kubectl"}],
        "creationTimestamp": "2025-01-01T00:00:00Z",
    },
    "spec": {
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "main",
                "image": "nginx",
                "args": ["--fast"],
                "env": [
                    {"name": "PASSWORD", "value": SECRET},
                    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "resources": {"requests": {"cpu": "1"}},
                "ports": [{"containerPort": 80, "hostPort": 8080}],
            }
        ],
        "priority": 0,
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}],
    },
    "status": {"phase": "Pending"},
}
CLAIM: Json = {
    "metadata": {"name": "d", "namespace": "shop", "uid": "u", "annotations": {exporting.LAST_APPLIED: SECRET}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
DEFAULT_PRIORITY: Json = {"metadata": {"name": "usual"}, "value": 50, "globalDefault": True}
DEFAULT_STORAGE: Json = {
    "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "example.com/disk",
    "parameters": {"adminSecretName": SECRET},
}


@pytest.mark.parametrize("full", [False, True])
def test_what_must_stay_is_not_there(full: bool) -> None:
    found = msgspec.json.encode(exporting.exported(kinds.POD, POD, full=full)).decode()
    assert SECRET not in found
    assert ("managedFields" in found, "PASSWORD" in found, "example.com/team" in found) == (False, full, full)
    claim = msgspec.json.encode(exporting.exported(kinds.PERSISTENT_VOLUME_CLAIM, CLAIM, full=full)).decode()
    assert SECRET not in claim
    workload = {"metadata": {"name": "rs", "namespace": "shop"}, "spec": {"selector": {}, "template": POD}}
    assert exporting.exported(kinds.REPLICA_SET, workload, full=full)["spec"] == {"selector": {}}


def test_only_what_scheduling_reads_is_kept() -> None:
    found = exporting.exported(kinds.STORAGE_CLASS, DEFAULT_STORAGE)
    assert found == {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": DEFAULT_STORAGE["metadata"],
        "provisioner": "example.com/disk",
    }
    node = {
        "metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {"example.com/x": "y"}},
        "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4"}, "nodeInfo": {"kubeletVersion": "v1.34.1"}, "addresses": []},
    }
    kept = exporting.exported(kinds.NODE, node)
    assert meta.from_builtins(kept, Node) == meta.from_builtins(node, Node)
    assert (kept["status"], kept["spec"]) == ({"allocatable": {"cpu": "4"}}, {"taints": node["spec"]["taints"]})


@pytest.mark.parametrize("full", [False, True])
def test_reading_back_gives_what_scheduling_saw(full: bool) -> None:
    """Defaults that came up later do not change what is there already: a priority of 0, a claim without a class."""
    objects = [
        exporting.exported(kinds.PRIORITY_CLASS, DEFAULT_PRIORITY, full=full),
        exporting.exported(kinds.STORAGE_CLASS, DEFAULT_STORAGE, full=full),
        exporting.exported(kinds.PERSISTENT_VOLUME_CLAIM, CLAIM, full=full),
        exporting.exported(kinds.POD, POD, full=full),
    ]
    text = msgspec.json.encode(exporting.listed(objects))
    found = given(load_text(text, "snapshot.json"), NOW_MS)
    (pod,) = found.pending
    before = meta.from_builtins(POD, Pod)
    assert pod.spec.priority == 0
    assert (pod.uid, pod.key) == (before.uid, before.key)
    assert [(each.image, each.resources.requests, each.ports[0].host_port) for each in pod.spec.containers] == [
        ("nginx", {"cpu": "1"}, 8080)
    ]
    assert pod.spec.volumes == before.spec.volumes
    claims = [value for kind, _, value in found.others if kind == "PersistentVolumeClaim"]
    assert [value["spec"]["storageClassName"] for value in claims] == [""]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_what_is_written_is_taken_again(sample: Json, full: bool) -> None:
    kind = kinds.BY_NAME[sample["kind"]]
    written = exporting.exported(kind, sample, full=full)
    (taken,) = load_text(msgspec.json.encode(written), "snapshot.json")
    assert (taken.kind, taken.value["metadata"]["name"]) == (kind, sample["metadata"]["name"])


def test_every_kind_can_be_written() -> None:
    assert set(exporting.RECORDS) == set(kinds.ALL)
    for kind in kinds.ALL:
        found = exporting.exported(kind, {"metadata": {"name": "x"}})
        assert (found["kind"], found["apiVersion"], found["metadata"]) == (kind.name, kind.api_version, {"name": "x"})
